package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"streamdb/planner/bind"
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// utility runs every statement that is no query and no DML.
func (s *Session) utility(ctx context.Context, stmt parser.Statement, args []types.Datum) (*Result, error) {
	if s.tx.implicit > 0 && s.tx.explicit() && changesCatalog(stmt) {
		// DDL takes effect at once, and sees what the statements before it wrote.
		if _, err := s.commit(ctx); err != nil {
			return nil, err
		}
		s.begin(false)
	}
	if stmt.Ext != nil {
		return s.extension(ctx, stmt)
	}
	switch n := stmt.Node.GetNode().(type) {
	case *ast.Node_TransactionStmt:
		return s.transaction(ctx, n.TransactionStmt)
	case *ast.Node_VariableSetStmt:
		return s.setStmt(n.VariableSetStmt)
	case *ast.Node_VariableShowStmt:
		return s.showSetting(n.VariableShowStmt.Name)
	case *ast.Node_CreateStmt:
		return s.createTable(ctx, stmt, rangeVarCreation(n.CreateStmt.Relation, n.CreateStmt.IfNotExists))
	case *ast.Node_CreateTableAsStmt:
		if n.CreateTableAsStmt.Objtype == ast.ObjectType_OBJECT_MATVIEW {
			return s.createMaterializedView(ctx, stmt, n.CreateTableAsStmt, nil, nil)
		}
		return s.createTableAs(ctx, stmt, n.CreateTableAsStmt)
	case *ast.Node_ViewStmt:
		return s.createView(ctx, stmt, n.ViewStmt)
	case *ast.Node_IndexStmt:
		return s.createIndex(ctx, stmt, n.IndexStmt, nil)
	case *ast.Node_CreateSchemaStmt:
		return s.createSchema(n.CreateSchemaStmt)
	case *ast.Node_DropStmt:
		return s.dropStmt(ctx, n.DropStmt)
	case *ast.Node_CopyStmt:
		return s.copyStmt(ctx, stmt)
	case *ast.Node_TruncateStmt:
		return s.truncate(ctx, n.TruncateStmt)
	case *ast.Node_CommentStmt:
		return s.comment(n.CommentStmt)
	case *ast.Node_PrepareStmt:
		return s.prepareStmt(ctx, stmt, n.PrepareStmt)
	case *ast.Node_ExecuteStmt:
		return s.executeStmt(ctx, n.ExecuteStmt)
	case *ast.Node_DeallocateStmt:
		return s.deallocate(n.DeallocateStmt)
	case *ast.Node_DeclareCursorStmt:
		return s.declareCursor(ctx, stmt, n.DeclareCursorStmt)
	case *ast.Node_FetchStmt:
		return s.fetch(ctx, n.FetchStmt)
	case *ast.Node_ClosePortalStmt:
		return s.closeCursor(n.ClosePortalStmt.Portalname)
	case *ast.Node_DiscardStmt:
		return s.discard(n.DiscardStmt)
	case *ast.Node_RenameStmt:
		return s.rename(n.RenameStmt)
	case *ast.Node_AlterObjectSchemaStmt:
		return s.setSchema(n.AlterObjectSchemaStmt)
	case *ast.Node_AlterTableStmt:
		return s.alterTable(n.AlterTableStmt)
	case *ast.Node_AlterSystemStmt:
		return s.alterSystem(ctx, n.AlterSystemStmt.Setstmt)
	case *ast.Node_VacuumStmt:
		if n.VacuumStmt.IsVacuumcmd {
			return done("VACUUM"), nil
		}
		return done("ANALYZE"), nil
	case *ast.Node_CheckPointStmt:
		return s.flush(ctx, "CHECKPOINT")
	case *ast.Node_ListenStmt:
		return nil, sqlerr.Unsupported("LISTEN")
	case *ast.Node_UnlistenStmt:
		return done("UNLISTEN"), nil
	case *ast.Node_LockStmt:
		return done("LOCK TABLE"), nil
	}
	return nil, sqlerr.Unsupported("%s", parser.Tag(&stmt))
}

func changesCatalog(stmt parser.Statement) bool {
	switch stmt.Ext.(type) {
	case *parser.CreateSource, *parser.CreateTable, *parser.CreateMaterializedView, *parser.CreateIndex, *parser.CreateSink, *parser.Drop, *parser.AlterSet, *parser.Flush:
		return true
	}
	if stmt.Node == nil {
		return false
	}
	switch stmt.Node.GetNode().(type) {
	case *ast.Node_CreateStmt, *ast.Node_CreateTableAsStmt, *ast.Node_ViewStmt, *ast.Node_IndexStmt, *ast.Node_CreateSchemaStmt, *ast.Node_DropStmt, *ast.Node_RenameStmt:
		return true
	}
	return false
}

// extension runs a statement that PostgreSQL has not.
func (s *Session) extension(ctx context.Context, stmt parser.Statement) (*Result, error) {
	switch x := stmt.Ext.(type) {
	case *parser.Flush:
		return s.flush(ctx, "FLUSH")
	case *parser.Show:
		return s.show(x)
	case *parser.ShowCreate:
		return s.showCreate(x)
	case *parser.Describe:
		return s.describe(x)
	case *parser.Explain:
		return s.explain(ctx, x)
	case *parser.CreateTable:
		if x.As != nil {
			return s.createTableAs(ctx, stmt, x.As)
		}
		return s.createTable(ctx, stmt, rangeVarCreation(x.Create.Relation, x.Create.IfNotExists))
	case *parser.CreateMaterializedView:
		return s.createMaterializedView(ctx, stmt, x.Create, x.With, x.BackfillOrder)
	case *parser.CreateIndex:
		return s.createIndex(ctx, stmt, x.Create, x.With)
	case *parser.CreateSource:
		return s.createSource(ctx, stmt, x)
	case *parser.CreateSink:
		return s.createSink(ctx, stmt, x)
	case *parser.Drop:
		return s.drop(ctx, x.Kind, x.Names, x.IfExists, x.Cascade)
	case *parser.AlterSet:
		return s.alterSet(ctx, x)
	case *parser.Backfill:
		return s.pauseBackfill(ctx, x)
	case *parser.AlterObject:
		return s.alterObject(x)
	case *parser.AlterSwap:
		return s.swap(x)
	case *parser.Recover:
		return nil, sqlerr.Unsupported("RECOVER: a job that has stopped is not started again").At(x.Pos).
			WithHint("Drop the relation and create it again; SELECT * FROM rw_catalog.rw_job_errors shows all that have stopped.")
	case *parser.CancelJobs:
		ids, err := s.cancelJobs(x.IDs)
		if err != nil {
			return nil, err
		}
		col := chunk.New(types.Int4, len(ids))
		for _, id := range ids {
			col.Append(types.NewInt(id))
		}
		return rowsResult("CANCEL JOBS", []ResultColumn{{Name: "Id", Type: types.Int4}}, chunk.Make(col)), nil
	case *parser.Wait:
		if err := s.waitJobs(ctx, x); err != nil {
			return nil, err
		}
		return done("WAIT"), nil
	case *parser.Kill:
		return s.kill(x)
	case *parser.Check:
		return s.checkView(ctx, x)
	}
	return nil, sqlerr.Unsupported("%s", parser.Tag(&stmt))
}

// flush makes everything sent so far durable and visible.
func (s *Session) flush(ctx context.Context, name string) (*Result, error) {
	e, err := s.db.coord.Flush()
	if err == nil {
		err = s.db.coord.Wait(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	s.last = max(s.last, e)
	return done(name), nil
}

// transaction is BEGIN, COMMIT, ROLLBACK and savepoints.
func (s *Session) transaction(ctx context.Context, t *ast.TransactionStmt) (*Result, error) {
	inBlock := s.tx.explicit() && s.tx.implicit == 0
	switch t.Kind {
	case ast.TransactionStmtKind_TRANS_STMT_BEGIN, ast.TransactionStmtKind_TRANS_STMT_START:
		name := "BEGIN"
		if t.Kind == ast.TransactionStmtKind_TRANS_STMT_START {
			name = "START TRANSACTION"
		}
		if inBlock {
			s.notice("WARNING", sqlerr.New(sqlerr.ActiveTransaction, "there is already a transaction in progress"))
			return done(name), nil
		}
		if s.tx.implicit > 0 {
			// The implicit block becomes the user's.
			s.tx.implicit = 0
		} else {
			s.begin(s.set.on("default_transaction_read_only"))
		}
		return done(name), s.transactionModes(t.Options)
	case ast.TransactionStmtKind_TRANS_STMT_COMMIT:
		if !inBlock {
			s.notice("WARNING", sqlerr.New(sqlerr.NoActiveTransaction, "there is no transaction in progress"))
			if s.tx.implicit == 0 {
				return done("COMMIT"), nil
			}
		}
		s.tx.implicit = 0
		name, err := s.commit(ctx)
		if err != nil {
			return nil, err
		}
		return done(name), nil
	case ast.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		if !inBlock {
			s.notice("WARNING", sqlerr.New(sqlerr.NoActiveTransaction, "there is no transaction in progress"))
		}
		s.tx.implicit = 0
		s.rollback()
		return done("ROLLBACK"), nil
	case ast.TransactionStmtKind_TRANS_STMT_SAVEPOINT, ast.TransactionStmtKind_TRANS_STMT_RELEASE, ast.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		if !inBlock {
			word := map[ast.TransactionStmtKind]string{ast.TransactionStmtKind_TRANS_STMT_SAVEPOINT: "SAVEPOINT", ast.TransactionStmtKind_TRANS_STMT_RELEASE: "RELEASE SAVEPOINT", ast.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO: "ROLLBACK TO SAVEPOINT"}[t.Kind]
			return nil, sqlerr.New(sqlerr.NoActiveTransaction, "%s can only be used in transaction blocks", word)
		}
		switch t.Kind {
		case ast.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
			s.tx.save(t.SavepointName, s.set)
			return done("SAVEPOINT"), nil
		case ast.TransactionStmtKind_TRANS_STMT_RELEASE:
			return done("RELEASE"), s.tx.release(t.SavepointName)
		}
		settings, err := s.tx.txn.rollbackTo(t.SavepointName)
		if err != nil {
			return nil, err
		}
		s.restoreSettings(settings)
		s.tx.failed = false
		return done("ROLLBACK"), nil
	}
	return nil, sqlerr.Unsupported("two-phase commit")
}

// transactionModes applies ISOLATION LEVEL and READ ONLY of a BEGIN or SET TRANSACTION.
func (s *Session) transactionModes(opts []*ast.Node) error {
	for _, o := range opts {
		d := o.GetDefElem()
		switch d.GetDefname() {
		case "transaction_isolation":
			s.assign("transaction_isolation", d.GetArg().GetAConst().GetSval().GetSval())
		case "transaction_read_only":
			s.tx.readOnly = d.GetArg().GetAConst().GetIval().GetIval() != 0
			s.assign("transaction_read_only", onOff(s.tx.readOnly))
		}
	}
	return nil
}

// setStmt is SET, SET LOCAL, RESET and SET TRANSACTION.
func (s *Session) setStmt(n *ast.VariableSetStmt) (*Result, error) {
	switch n.Kind {
	case ast.VariableSetKind_VAR_RESET_ALL:
		for key := range settingDefs {
			old := s.set.get(key)
			delete(s.set.vals, key)
			s.settingChanged(key, old)
		}
		return done("RESET"), nil
	case ast.VariableSetKind_VAR_RESET, ast.VariableSetKind_VAR_SET_DEFAULT:
		d, err := findSetting(n.Name)
		if err != nil {
			return nil, err
		}
		if d.readOnly {
			return nil, sqlerr.New("55P02", "parameter %q cannot be changed", d.name)
		}
		key := strings.ToLower(d.name)
		old := s.set.get(key)
		delete(s.set.vals, key)
		s.settingChanged(key, old)
		if n.Kind == ast.VariableSetKind_VAR_SET_DEFAULT {
			return done("SET"), nil
		}
		return done("RESET"), nil
	case ast.VariableSetKind_VAR_SET_MULTI:
		if n.Name == "SESSION CHARACTERISTICS" {
			for _, o := range n.Args {
				d := o.GetDefElem()
				switch d.GetDefname() {
				case "transaction_isolation":
					s.assign("default_transaction_isolation", d.GetArg().GetAConst().GetSval().GetSval())
				case "transaction_read_only":
					s.assign("default_transaction_read_only", onOff(d.GetArg().GetAConst().GetIval().GetIval() != 0))
				}
			}
			return done("SET"), nil
		}
		if !s.tx.explicit() {
			s.notice("WARNING", sqlerr.New(sqlerr.NoActiveTransaction, "SET TRANSACTION can only be used in transaction blocks"))
			return done("SET"), nil
		}
		return done("SET"), s.transactionModes(n.Args)
	}
	vals, err := parser.SetValues(n)
	if err != nil {
		return nil, err
	}
	sep := ", "
	for i, v := range vals {
		if strings.EqualFold(n.Name, "search_path") && v != "$user" {
			vals[i] = parser.QuoteIdent(v)
		} else if v == "$user" {
			vals[i] = `"$user"`
		}
	}
	if err := s.setTo(n.Name, strings.Join(vals, sep), n.IsLocal); err != nil {
		return nil, err
	}
	return done("SET"), nil
}

// truncate deletes all rows of tables, as DELETE does.
func (s *Session) truncate(ctx context.Context, t *ast.TruncateStmt) (*Result, error) {
	for _, r := range t.Relations {
		rv := r.GetRangeVar()
		name := qualified(&parser.Name{Schema: rv.Schemaname, Name: rv.Relname})
		stmts, err := parser.Parse("DELETE FROM " + name)
		if err != nil {
			return nil, err
		}
		p := &Prepared{Stmt: stmts[0], session: s}
		if err := s.prepare(p); err != nil {
			return nil, err
		}
		if _, err := s.dml(ctx, p.plan.stmt, s.exprCtx(nil)); err != nil {
			return nil, err
		}
	}
	return done("TRUNCATE TABLE"), nil
}

// comment is COMMENT ON a relation or a column.
func (s *Session) comment(c *ast.CommentStmt) (*Result, error) {
	var parts []string
	for _, p := range c.Object.GetList().GetItems() {
		parts = append(parts, p.GetString_().GetSval())
	}
	column := ""
	switch c.Objtype {
	case ast.ObjectType_OBJECT_COLUMN:
		column, parts = parts[len(parts)-1], parts[:len(parts)-1]
	case ast.ObjectType_OBJECT_TABLE, ast.ObjectType_OBJECT_VIEW, ast.ObjectType_OBJECT_MATVIEW, ast.ObjectType_OBJECT_INDEX:
	default:
		return nil, sqlerr.Unsupported("COMMENT ON %s", strings.ReplaceAll(strings.TrimPrefix(c.Objtype.String(), "OBJECT_"), "_", " "))
	}
	n := parser.Name{Pos: -1, Name: parts[len(parts)-1]}
	if len(parts) > 1 {
		n.Schema = parts[len(parts)-2]
	}
	db := s.db
	db.ddl.Lock()
	defer db.ddl.Unlock()
	r, err := s.find(n)
	if err != nil {
		return nil, err
	}
	out := *r
	if column == "" {
		out.Comment = c.Comment
	} else {
		out.Columns = slices.Clone(r.Columns)
		i := slices.IndexFunc(out.Columns, func(col catalog.Column) bool { return col.Name == column && !col.Hidden })
		if i < 0 {
			return nil, sqlerr.New(sqlerr.UndefinedColumn, "column %q of relation %q does not exist", column, r.Name)
		}
		out.Columns[i].Comment = c.Comment
	}
	if err := db.change([]*catalog.Relation{&out}, nil, nil); err != nil {
		return nil, err
	}
	return done("COMMENT"), nil
}

// prepareStmt is PREPARE name AS.
func (s *Session) prepareStmt(ctx context.Context, stmt parser.Statement, n *ast.PrepareStmt) (*Result, error) {
	if s.prepared[n.Name] != nil {
		return nil, sqlerr.New("42P05", "prepared statement %q already exists", n.Name)
	}
	inner := stmt
	inner.Node = n.Query
	p := &Prepared{Stmt: inner, session: s}
	for _, a := range n.Argtypes {
		t, err := typeName(a.GetTypeName())
		if err != nil {
			return nil, err
		}
		p.plan.given = append(p.plan.given, t)
	}
	if err := s.prepare(p); err != nil {
		return nil, err
	}
	s.prepared[n.Name] = p
	return done("PREPARE"), nil
}

// executeStmt is EXECUTE name (args).
func (s *Session) executeStmt(ctx context.Context, n *ast.ExecuteStmt) (*Result, error) {
	p := s.prepared[n.Name]
	if p == nil {
		return nil, sqlerr.New(sqlerr.UndefinedStatement, "prepared statement %q does not exist", n.Name)
	}
	if len(n.Params) != len(p.Params) {
		return nil, sqlerr.New(sqlerr.Syntax, "wrong number of parameters for prepared statement %q", n.Name).
			WithDetail("Expected %d parameters but got %d.", len(p.Params), len(n.Params))
	}
	if s.stale(p) {
		if err := s.prepare(p); err != nil {
			return nil, err
		}
	}
	args := make([]types.Datum, len(n.Params))
	for i, a := range n.Params {
		var err error
		if args[i], err = s.constant(a, p.Params[i]); err != nil {
			return nil, err
		}
	}
	return s.execute(ctx, p, args)
}

func (s *Session) deallocate(n *ast.DeallocateStmt) (*Result, error) {
	if n.Name == "" {
		clear(s.prepared)
		return done("DEALLOCATE ALL"), nil
	}
	if s.prepared[n.Name] == nil {
		return nil, sqlerr.New(sqlerr.UndefinedStatement, "prepared statement %q does not exist", n.Name)
	}
	delete(s.prepared, n.Name)
	return done("DEALLOCATE"), nil
}

func (s *Session) discard(n *ast.DiscardStmt) (*Result, error) {
	if n.Target == ast.DiscardMode_DISCARD_ALL {
		if err := s.notInBlock("DISCARD ALL"); err != nil {
			return nil, err
		}
		clear(s.prepared)
		s.closeCursors(true)
		if _, err := s.setStmt(&ast.VariableSetStmt{Kind: ast.VariableSetKind_VAR_RESET_ALL}); err != nil {
			return nil, err
		}
	}
	return done("DISCARD " + strings.TrimPrefix(n.Target.String(), "DISCARD_")), nil
}

// kill ends another session's statement.
func (s *Session) kill(k *parser.Kill) (*Result, error) {
	var id uint32
	if _, err := fmt.Sscan(k.Process, &id); err != nil {
		return nil, sqlerr.New(sqlerr.InvalidParameter, "%q is not a process id", k.Process).WithHint("SHOW PROCESSLIST shows them.")
	}
	s.db.mu.Lock()
	other := s.db.sessions[id]
	s.db.mu.Unlock()
	if other == nil {
		return nil, sqlerr.New(sqlerr.UndefinedObject, "process %d does not exist", id).WithHint("SHOW PROCESSLIST shows them.")
	}
	other.interrupt(errCanceled)
	return done("KILL"), nil
}

func typeName(n *ast.TypeName) (types.Type, error) { return bind.TypeName(n) }

// constant evaluates an expression without columns as a value of type t.
func (s *Session) constant(n *ast.Node, t types.Type) (types.Datum, error) {
	text, err := parser.DeparseExpr(n)
	if err != nil {
		return types.Datum{}, err
	}
	ectx := s.exprCtx(nil)
	e, err := bind.Scalar(text, &catalog.Relation{Kind: catalog.System}, s.bindOptions(nil))
	if err == nil {
		e, err = ectx.MakeCast(e, t, false)
	}
	if err != nil {
		return types.Datum{}, err
	}
	return expr.EvalConst(ectx, e)
}

// createTableAs is CREATE TABLE … AS: the table, then its rows.
func (s *Session) createTableAs(ctx context.Context, stmt parser.Statement, n *ast.CreateTableAsStmt) (*Result, error) {
	c := rangeVarCreation(n.Into.Rel, n.IfNotExists)
	if skip, err := s.place(&c); err != nil || skip {
		return done("CREATE TABLE AS"), err
	}
	rel, q, err := bind.CreateTableAs(stmt, s.bindOptions(nil))
	if err != nil {
		return nil, err
	}
	rel.Schema, rel.Name = c.schema, c.name
	with := rel.With
	if err := s.takeOptions(rel, nil); err != nil {
		return nil, err
	}
	rel.With, rel.Background, rel.RateLimit = with, false, nil
	j, err := s.startJob(ctx, rel, nil)
	if err != nil {
		return nil, err
	}
	if n.Into.SkipData {
		return done("CREATE TABLE AS"), nil
	}
	var exprs []expr.Expr
	var names []string
	src := q.Root.Schema()
	for i, col := range j.rel.Columns {
		names = append(names, col.Name)
		if i < len(src) && !col.Hidden {
			exprs = append(exprs, &expr.ColRef{Index: i, Typ: src[i].Type, Name: src[i].Name})
		} else {
			exprs = append(exprs, &expr.Const{Typ: col.Type})
		}
	}
	ins, err := s.plan(&plan.Insert{Table: j.rel, Source: &plan.Project{Input: q.Root, Exprs: exprs, Names: names}, Conflict: catalog.ConflictNone}, s.db.Catalog())
	if err != nil {
		return nil, err
	}
	w, err := s.dml(ctx, ins, s.exprCtx(nil))
	if err != nil {
		// Without its rows the table is not wanted either.
		s.db.ddl.Lock()
		defer s.db.ddl.Unlock()
		if s.db.Catalog().ByID(j.rel.ID) != nil {
			s.db.abandon(j.rel, err)
		}
		return nil, err
	}
	return done(fmt.Sprint("SELECT ", w.rows)), nil
}
