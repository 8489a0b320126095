package parser

import (
	"strings"

	"streamdb/sql/parser/ast"
)

// Tag returns the command tag of a statement in PostgreSQL's words, without counts: "SELECT", "CREATE MATERIALIZED VIEW",
// "INSERT", …; "???" for what PostgreSQL would not know either.
func Tag(s *Statement) string {
	if s.Ext != nil {
		return extTag(s.Ext)
	}
	return nodeTag(s.Node)
}

func extTag(e Ext) string {
	switch e := e.(type) {
	case *CreateSource:
		return "CREATE SOURCE"
	case *CreateTable:
		if e.As != nil {
			return "CREATE TABLE AS"
		}
		return "CREATE TABLE"
	case *CreateMaterializedView:
		return "CREATE MATERIALIZED VIEW"
	case *CreateIndex:
		return "CREATE INDEX"
	case *CreateSink:
		return "CREATE SINK"
	case *CreateSubscription:
		return "CREATE SUBSCRIPTION"
	case *CreateConnection:
		return "CREATE CONNECTION"
	case *CreateSecret:
		return "CREATE SECRET"
	case *Drop:
		return "DROP " + string(e.Kind)
	case *AlterSet:
		return "ALTER " + string(e.Kind)
	case *AlterSwap:
		return "ALTER " + string(e.Kind)
	case *AlterQuery:
		return "ALTER " + string(e.Kind)
	case *AlterObject:
		return "ALTER " + string(e.Kind)
	case *AlterSource:
		return "ALTER SOURCE"
	case *AlterConnector:
		return "ALTER " + string(e.Kind)
	case *Comment:
		return "COMMENT"
	case *Show, *ShowCreate:
		return "SHOW"
	case *Describe:
		return "DESCRIBE"
	case *Explain:
		return "EXPLAIN"
	case *Flush:
		return "FLUSH"
	case *Wait:
		return "WAIT"
	case *Recover:
		return "RECOVER"
	case *Check:
		return "CHECK"
	case *Backfill:
		if e.Resume {
			return "RESUME BACKFILL"
		}
		return "PAUSE BACKFILL"
	case *CancelJobs:
		return "CANCEL JOBS"
	case *Kill:
		return "KILL"
	case *CopySubscribe:
		return "COPY"
	case *DeclareSubscriptionCursor:
		return "DECLARE CURSOR"
	case *FetchWith:
		return "FETCH"
	}
	return "???"
}

func nodeTag(n *ast.Node) string {
	if n == nil {
		return "???"
	}
	switch x := n.Node.(type) {
	case *ast.Node_SelectStmt:
		if x.SelectStmt.IntoClause != nil {
			return "SELECT INTO"
		}
		return "SELECT"
	case *ast.Node_InsertStmt:
		return "INSERT"
	case *ast.Node_UpdateStmt:
		return "UPDATE"
	case *ast.Node_DeleteStmt:
		return "DELETE"
	case *ast.Node_MergeStmt:
		return "MERGE"
	case *ast.Node_TransactionStmt:
		return transactionTag(x.TransactionStmt.Kind)
	case *ast.Node_DeclareCursorStmt:
		return "DECLARE CURSOR"
	case *ast.Node_ClosePortalStmt:
		if x.ClosePortalStmt.Portalname == "" {
			return "CLOSE CURSOR ALL"
		}
		return "CLOSE CURSOR"
	case *ast.Node_FetchStmt:
		if x.FetchStmt.Ismove {
			return "MOVE"
		}
		return "FETCH"
	case *ast.Node_CreatedbStmt:
		return "CREATE DATABASE"
	case *ast.Node_AlterDatabaseStmt, *ast.Node_AlterDatabaseSetStmt, *ast.Node_AlterDatabaseRefreshCollStmt:
		return "ALTER DATABASE"
	case *ast.Node_DropdbStmt:
		return "DROP DATABASE"
	case *ast.Node_CreateSchemaStmt:
		return "CREATE SCHEMA"
	case *ast.Node_CreateStmt:
		return "CREATE TABLE"
	case *ast.Node_CreateTableAsStmt:
		switch {
		case x.CreateTableAsStmt.Objtype == ast.ObjectType_OBJECT_MATVIEW:
			return "CREATE MATERIALIZED VIEW"
		case x.CreateTableAsStmt.IsSelectInto:
			return "SELECT INTO"
		}
		return "CREATE TABLE AS"
	case *ast.Node_ViewStmt:
		return "CREATE VIEW"
	case *ast.Node_IndexStmt:
		return "CREATE INDEX"
	case *ast.Node_CreateSeqStmt:
		return "CREATE SEQUENCE"
	case *ast.Node_AlterSeqStmt:
		return "ALTER SEQUENCE"
	case *ast.Node_CreateFunctionStmt:
		if x.CreateFunctionStmt.IsProcedure {
			return "CREATE PROCEDURE"
		}
		return "CREATE FUNCTION"
	case *ast.Node_AlterFunctionStmt:
		return "ALTER " + objectWords(x.AlterFunctionStmt.Objtype)
	case *ast.Node_CreateRoleStmt, *ast.Node_AlterRoleStmt, *ast.Node_AlterRoleSetStmt, *ast.Node_DropRoleStmt:
		return roleTag(n)
	case *ast.Node_CreateSubscriptionStmt:
		return "CREATE SUBSCRIPTION"
	case *ast.Node_AlterSubscriptionStmt:
		return "ALTER SUBSCRIPTION"
	case *ast.Node_DropSubscriptionStmt:
		return "DROP SUBSCRIPTION"
	case *ast.Node_CreatePublicationStmt:
		return "CREATE PUBLICATION"
	case *ast.Node_AlterPublicationStmt:
		return "ALTER PUBLICATION"
	case *ast.Node_CreateExtensionStmt:
		return "CREATE EXTENSION"
	case *ast.Node_CreateEnumStmt, *ast.Node_CompositeTypeStmt, *ast.Node_CreateRangeStmt:
		return "CREATE TYPE"
	case *ast.Node_AlterEnumStmt, *ast.Node_AlterTypeStmt:
		return "ALTER TYPE"
	case *ast.Node_CreateDomainStmt:
		return "CREATE DOMAIN"
	case *ast.Node_AlterDomainStmt:
		return "ALTER DOMAIN"
	case *ast.Node_CreateTrigStmt:
		return "CREATE TRIGGER"
	case *ast.Node_RuleStmt:
		return "CREATE RULE"
	case *ast.Node_CreatePolicyStmt:
		return "CREATE POLICY"
	case *ast.Node_CreateStatsStmt:
		return "CREATE STATISTICS"
	case *ast.Node_CreateCastStmt:
		return "CREATE CAST"
	case *ast.Node_CreateTableSpaceStmt:
		return "CREATE TABLESPACE"
	case *ast.Node_CreateForeignTableStmt:
		return "CREATE FOREIGN TABLE"
	case *ast.Node_CreateForeignServerStmt:
		return "CREATE SERVER"
	case *ast.Node_DefineStmt:
		return "CREATE " + objectWords(x.DefineStmt.Kind)
	case *ast.Node_AlterTableStmt:
		return "ALTER " + objectWords(x.AlterTableStmt.Objtype)
	case *ast.Node_RenameStmt:
		t := x.RenameStmt.RenameType
		if t == ast.ObjectType_OBJECT_COLUMN || t == ast.ObjectType_OBJECT_ATTRIBUTE {
			t = x.RenameStmt.RelationType
		}
		return "ALTER " + objectWords(t)
	case *ast.Node_AlterObjectSchemaStmt:
		return "ALTER " + objectWords(x.AlterObjectSchemaStmt.ObjectType)
	case *ast.Node_AlterOwnerStmt:
		return "ALTER " + objectWords(x.AlterOwnerStmt.ObjectType)
	case *ast.Node_AlterDefaultPrivilegesStmt:
		return "ALTER DEFAULT PRIVILEGES"
	case *ast.Node_AlterSystemStmt:
		return "ALTER SYSTEM"
	case *ast.Node_DropStmt:
		return "DROP " + objectWords(x.DropStmt.RemoveType)
	case *ast.Node_DropOwnedStmt:
		return "DROP OWNED"
	case *ast.Node_ReassignOwnedStmt:
		return "REASSIGN OWNED"
	case *ast.Node_TruncateStmt:
		return "TRUNCATE TABLE"
	case *ast.Node_CommentStmt:
		return "COMMENT"
	case *ast.Node_SecLabelStmt:
		return "SECURITY LABEL"
	case *ast.Node_CopyStmt:
		return "COPY"
	case *ast.Node_GrantStmt:
		if x.GrantStmt.IsGrant {
			return "GRANT"
		}
		return "REVOKE"
	case *ast.Node_GrantRoleStmt:
		if x.GrantRoleStmt.IsGrant {
			return "GRANT ROLE"
		}
		return "REVOKE ROLE"
	case *ast.Node_VariableSetStmt:
		switch x.VariableSetStmt.Kind {
		case ast.VariableSetKind_VAR_RESET, ast.VariableSetKind_VAR_RESET_ALL:
			return "RESET"
		}
		return "SET"
	case *ast.Node_VariableShowStmt:
		return "SHOW"
	case *ast.Node_DiscardStmt:
		switch x.DiscardStmt.Target {
		case ast.DiscardMode_DISCARD_ALL:
			return "DISCARD ALL"
		case ast.DiscardMode_DISCARD_PLANS:
			return "DISCARD PLANS"
		case ast.DiscardMode_DISCARD_SEQUENCES:
			return "DISCARD SEQUENCES"
		}
		return "DISCARD TEMP"
	case *ast.Node_ConstraintsSetStmt:
		return "SET CONSTRAINTS"
	case *ast.Node_PrepareStmt:
		return "PREPARE"
	case *ast.Node_ExecuteStmt:
		return "EXECUTE"
	case *ast.Node_DeallocateStmt:
		if x.DeallocateStmt.Isall {
			return "DEALLOCATE ALL"
		}
		return "DEALLOCATE"
	case *ast.Node_ExplainStmt:
		return "EXPLAIN"
	case *ast.Node_RefreshMatViewStmt:
		return "REFRESH MATERIALIZED VIEW"
	case *ast.Node_VacuumStmt:
		if x.VacuumStmt.IsVacuumcmd {
			return "VACUUM"
		}
		return "ANALYZE"
	case *ast.Node_ClusterStmt:
		return "CLUSTER"
	case *ast.Node_ReindexStmt:
		return "REINDEX"
	case *ast.Node_LockStmt:
		return "LOCK TABLE"
	case *ast.Node_CheckPointStmt:
		return "CHECKPOINT"
	case *ast.Node_LoadStmt:
		return "LOAD"
	case *ast.Node_CallStmt:
		return "CALL"
	case *ast.Node_DoStmt:
		return "DO"
	case *ast.Node_ListenStmt:
		return "LISTEN"
	case *ast.Node_UnlistenStmt:
		return "UNLISTEN"
	case *ast.Node_NotifyStmt:
		return "NOTIFY"
	}
	return "???"
}

func transactionTag(k ast.TransactionStmtKind) string {
	switch k {
	case ast.TransactionStmtKind_TRANS_STMT_BEGIN:
		return "BEGIN"
	case ast.TransactionStmtKind_TRANS_STMT_START:
		return "START TRANSACTION"
	case ast.TransactionStmtKind_TRANS_STMT_COMMIT:
		return "COMMIT"
	case ast.TransactionStmtKind_TRANS_STMT_ROLLBACK, ast.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		return "ROLLBACK"
	case ast.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		return "SAVEPOINT"
	case ast.TransactionStmtKind_TRANS_STMT_RELEASE:
		return "RELEASE"
	case ast.TransactionStmtKind_TRANS_STMT_PREPARE:
		return "PREPARE TRANSACTION"
	case ast.TransactionStmtKind_TRANS_STMT_COMMIT_PREPARED:
		return "COMMIT PREPARED"
	case ast.TransactionStmtKind_TRANS_STMT_ROLLBACK_PREPARED:
		return "ROLLBACK PREPARED"
	}
	return "???"
}

// roleTag: PostgreSQL answers ROLE to USER and GROUP too.
func roleTag(n *ast.Node) string {
	switch n.Node.(type) {
	case *ast.Node_CreateRoleStmt:
		return "CREATE ROLE"
	case *ast.Node_DropRoleStmt:
		return "DROP ROLE"
	}
	return "ALTER ROLE"
}

// objectWords writes a kind of object as its command tags do.
func objectWords(t ast.ObjectType) string {
	switch t {
	case ast.ObjectType_OBJECT_MATVIEW:
		return "MATERIALIZED VIEW"
	case ast.ObjectType_OBJECT_TABCONSTRAINT, ast.ObjectType_OBJECT_COLUMN:
		return "TABLE"
	case ast.ObjectType_OBJECT_DOMCONSTRAINT:
		return "DOMAIN"
	case ast.ObjectType_OBJECT_ATTRIBUTE:
		return "TYPE"
	case ast.ObjectType_OBJECT_FOREIGN_SERVER:
		return "SERVER"
	case ast.ObjectType_OBJECT_FDW:
		return "FOREIGN DATA WRAPPER"
	case ast.ObjectType_OBJECT_STATISTIC_EXT:
		return "STATISTICS"
	case ast.ObjectType_OBJECT_LARGEOBJECT:
		return "LARGE OBJECT"
	case ast.ObjectType_OBJECT_OPCLASS:
		return "OPERATOR CLASS"
	case ast.ObjectType_OBJECT_OPFAMILY:
		return "OPERATOR FAMILY"
	case ast.ObjectType_OBJECT_TSCONFIGURATION:
		return "TEXT SEARCH CONFIGURATION"
	case ast.ObjectType_OBJECT_TSDICTIONARY:
		return "TEXT SEARCH DICTIONARY"
	case ast.ObjectType_OBJECT_TSPARSER:
		return "TEXT SEARCH PARSER"
	case ast.ObjectType_OBJECT_TSTEMPLATE:
		return "TEXT SEARCH TEMPLATE"
	}
	return strings.ReplaceAll(strings.TrimPrefix(t.String(), "OBJECT_"), "_", " ")
}
