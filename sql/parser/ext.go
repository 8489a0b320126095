package parser

import "streamdb/sql/parser/ast"

// An Ext is a statement of our own, one plain struct each. Pos is always the offset of the statement's first token.
type Ext interface{ ext() }

// A Name is the name of something, qualified or not.
type Name struct {
	Pos                   int
	Catalog, Schema, Name string // empty: not given
}

// An ObjectKind says what a name names, in the words of SQL.
type ObjectKind string

const (
	Table            ObjectKind = "TABLE"
	View             ObjectKind = "VIEW"
	MaterializedView ObjectKind = "MATERIALIZED VIEW"
	Index            ObjectKind = "INDEX"
	Source           ObjectKind = "SOURCE"
	Sink             ObjectKind = "SINK"
	Subscription     ObjectKind = "SUBSCRIPTION"
	Connection       ObjectKind = "CONNECTION"
	Secret           ObjectKind = "SECRET"
	Function         ObjectKind = "FUNCTION"
	Fragment         ObjectKind = "FRAGMENT"
)

// OptionKind says how an option's value was written.
type OptionKind string

const (
	Flag      OptionKind = "flag"   // no value: Value is "true"
	String    OptionKind = "string" // a quoted string
	Number    OptionKind = "number" // with its sign
	Word      OptionKind = "word"   // an unquoted word, in lower case
	SecretRef OptionKind = "secret" // SECRET name: Value is the secret's name
)

// An Option is one name = value of a WITH list.
type Option struct {
	Pos      int
	Name     string // dotted names with their dots; unquoted parts in lower case
	Kind     OptionKind
	Value    string
	ValuePos int // that of the name for a flag
}

// A Format is FORMAT … ENCODE … (…) [KEY ENCODE … (…)].
type Format struct {
	Pos       int
	Format    string // plain, upsert, debezium, …
	Encode    string // json, avro, csv, …
	Options   []Option
	KeyEncode string // empty: not given
}

// An Include is INCLUDE kind [inner [type]] [AS column].
type Include struct {
	Pos       int
	Kind      string   // key, partition, offset, timestamp, header, payload, …
	Inner     string   // HEADER 'inner'
	InnerType *TypeRef // nil: not given
	As        string   // empty: not given
}

// A Watermark is WATERMARK FOR column AS expression [WITH TTL] among a table's columns.
type Watermark struct {
	Pos    int
	Column string
	Expr   *ast.Node
	TTL    bool
}

// A Generated is what follows AS in "column type AS expression".
type Generated struct {
	Pos    int // of the expression
	Column string
	Expr   *ast.Node
}

// Columns is what a column list holds besides what PostgreSQL's tree shows.
type Columns struct {
	Wildcard   bool // a * among them: the columns of the encoded data
	Watermarks []Watermark
	Generated  []Generated
}

// ConflictAction is what a table does with a row whose key is there.
type ConflictAction string

const (
	ConflictOverwrite       ConflictAction = "overwrite"             // DO UPDATE [FULL], OVERWRITE
	ConflictIgnore          ConflictAction = "ignore"                // DO NOTHING, IGNORE
	ConflictUpdateIfNotNull ConflictAction = "do update if not null" // NULLs leave what is there
	ConflictNone            ConflictAction = ""                      // not given
)

// CreateSource is CREATE SOURCE.
type CreateSource struct {
	Pos         int
	Name        Name
	IfNotExists bool
	Create      *ast.CreateStmt // the columns and constraints, as if of a table
	Columns     Columns
	Include     []Include
	With        []Option
	Format      *Format // nil: none
}

// CreateTable is CREATE TABLE with any clause that PostgreSQL has not, or with a WITH list. A CREATE TABLE without these is an
// ordinary statement with a CreateStmt or a CreateTableAsStmt.
type CreateTable struct {
	Pos            int
	Create         *ast.CreateStmt        // nil for CREATE TABLE … AS
	As             *ast.CreateTableAsStmt // nil for a table with defined columns
	Columns        Columns
	AppendOnly     bool
	OnConflict     ConflictAction
	VersionColumns []string // WITH VERSION COLUMN (…)
	Include        []Include
	With           []Option
	Format         *Format // nil: none
	From           *Name   // FROM source TABLE 'external'; nil: none
	External       string
	Engine         string // ENGINE = …; empty: not given
}

// CreateMaterializedView is CREATE MATERIALIZED VIEW with a WITH list; one without it is an ordinary statement.
type CreateMaterializedView struct {
	Pos           int
	Create        *ast.CreateTableAsStmt
	With          []Option       // all but backfill_order
	BackfillOrder *BackfillOrder // nil: not given
}

// A BackfillOrder is backfill_order = NONE | DEFAULT | AUTO | FIXED (a -> b, …).
type BackfillOrder struct {
	Pos  int
	Kind string // none, default, auto, fixed
	Arcs []BackfillArc
}

// A BackfillArc says that one relation is read before another.
type BackfillArc struct{ First, Then Name }

// CreateIndex is CREATE INDEX with DISTRIBUTED BY or a WITH list; one without them is an ordinary statement.
type CreateIndex struct {
	Pos         int
	Create      *ast.IndexStmt
	Distributed []*ast.Node // nil: not given
	With        []Option
}

// CreateSink is CREATE SINK.
type CreateSink struct {
	Pos         int
	Name        Name
	IfNotExists bool
	Into        *Name // a table; nil: outwards
	IntoColumns []string
	From        *Name     // nil: Query
	Query       *ast.Node // a SelectStmt; nil: From
	QueryText   string
	With        []Option
	Format      *Format // nil: none
}

// CreateSubscription is CREATE SUBSCRIPTION name FROM relation.
type CreateSubscription struct {
	Pos         int
	Name        Name
	IfNotExists bool
	From        Name
	With        []Option
}

// CreateConnection is CREATE CONNECTION.
type CreateConnection struct {
	Pos         int
	Name        Name
	IfNotExists bool
	With        []Option
}

// CreateSecret is CREATE SECRET name WITH (…) AS 'value'.
type CreateSecret struct {
	Pos         int
	Name        Name
	IfNotExists bool
	With        []Option
	Value       string
}

// Drop is DROP of what PostgreSQL has not: SOURCE, SINK, SUBSCRIPTION, CONNECTION, SECRET.
type Drop struct {
	Pos      int
	Kind     ObjectKind
	IfExists bool
	Names    []Name
	Cascade  bool
}

// AlterSet is ALTER … SET name {= | TO} value: parallelism, backfill_rate_limit, source_rate_limit, dml_rate_limit, ….
//
// ALTER FRAGMENT n, … SET … is one as well, with Fragments instead of a Name.
type AlterSet struct {
	Pos       int
	Kind      ObjectKind
	IfExists  bool
	Name      Name
	Fragments []int64
	Setting   Option // Value is lower-cased unless quoted; "default" for DEFAULT, "bounded(4)" keeps its parentheses
	Deferred  bool
}

// AlterSwap is ALTER … SWAP WITH other.
type AlterSwap struct {
	Pos   int
	Kind  ObjectKind
	Name  Name
	Other Name
}

// AlterQuery is ALTER MATERIALIZED VIEW (or SINK) … AS query.
type AlterQuery struct {
	Pos       int
	Kind      ObjectKind
	IfExists  bool
	Name      Name
	Query     *ast.Node // a SelectStmt
	QueryText string
}

// AlterObject is RENAME TO, OWNER TO or SET SCHEMA for a kind PostgreSQL has not.
type AlterObject struct {
	Pos      int
	Kind     ObjectKind
	IfExists bool
	Name     Name
	Action   string // RENAME, OWNER or SCHEMA
	To       string
}

// AlterSource is ALTER SOURCE … ADD COLUMN and the like, as an ALTER TABLE's tree.
type AlterSource struct {
	Pos   int
	Alter *ast.AlterTableStmt
}

// AlterConnector is ALTER … CONNECTOR WITH (…).
type AlterConnector struct {
	Pos      int
	Kind     ObjectKind
	IfExists bool
	Name     Name
	With     []Option
}

// Comment is COMMENT ON SOURCE, SINK or SUBSCRIPTION.
type Comment struct {
	Pos  int
	Kind ObjectKind
	Name Name
	Text *string // nil: IS NULL
}

// Show is SHOW of a list of things; SHOW of a setting is an ordinary statement.
type Show struct {
	Pos     int
	What    string    // in capitals: TABLES, MATERIALIZED VIEWS, INTERNAL TABLES, JOBS, …
	From    *Name     // a relation for COLUMNS and INDEXES, else a schema's name; nil: not given
	Like    *string   // nil: not given
	Where   *ast.Node // over the result's columns; nil: not given
	LikePos int
}

// ShowCreate is SHOW CREATE kind name.
type ShowCreate struct {
	Pos  int
	Kind ObjectKind
	Name Name
}

// Describe is DESCRIBE [FRAGMENTS] name.
type Describe struct {
	Pos       int
	Fragments bool
	Name      Name
}

// Explain is EXPLAIN of a statement or of something that exists.
type Explain struct {
	Pos     int
	Analyze bool
	Verbose bool
	Options []Option   // of the parenthesised list, ANALYZE and VERBOSE included
	Stmt    *Statement // nil: Kind and Name
	Kind    ObjectKind
	Name    Name
}

// Flush is FLUSH.
type Flush struct{ Pos int }

// Wait is WAIT [kind name].
type Wait struct {
	Pos  int
	Kind ObjectKind // empty: for all jobs
	Name Name
}

// Recover is RECOVER, of all, or RECOVER [kind] name of a job that has stopped.
type Recover struct {
	Pos  int
	Kind ObjectKind // empty: not said
	Name Name       // empty: everything
}

// Check is CHECK MATERIALIZED VIEW name: compare what it holds with what its query gives.
type Check struct {
	Pos  int
	Name Name
}

// Backfill is PAUSE BACKFILL or RESUME BACKFILL, of one relation or of all.
type Backfill struct {
	Pos    int
	Resume bool
	Name   Name // empty: all
}

// CancelJobs is CANCEL JOBS id, ….
type CancelJobs struct {
	Pos int
	IDs []int64
}

// Kill is KILL process.
type Kill struct {
	Pos     int
	Process string // a number as written, or a string's value
}

// CopySubscribe is COPY (SUBSCRIBE [TO] name [WITH (…)]) TO STDOUT [WITH (…)].
type CopySubscribe struct {
	Pos  int
	Name Name
	With []Option // of SUBSCRIBE
	Copy []Option // of COPY
}

// DeclareSubscriptionCursor is DECLARE name SUBSCRIPTION CURSOR FOR subscription [SINCE moment | FULL].
type DeclareSubscriptionCursor struct {
	Pos          int
	Name         string
	Subscription Name
	Since        *ast.Node // nil: not given
	Full         bool
}

// FetchWith is FETCH … WITH (timeout = …).
type FetchWith struct {
	Pos   int
	Fetch *ast.FetchStmt
	With  []Option
}

func (*CreateSource) ext()              {}
func (*CreateTable) ext()               {}
func (*CreateMaterializedView) ext()    {}
func (*CreateIndex) ext()               {}
func (*CreateSink) ext()                {}
func (*CreateSubscription) ext()        {}
func (*CreateConnection) ext()          {}
func (*CreateSecret) ext()              {}
func (*Drop) ext()                      {}
func (*AlterSet) ext()                  {}
func (*AlterSwap) ext()                 {}
func (*AlterQuery) ext()                {}
func (*AlterObject) ext()               {}
func (*AlterSource) ext()               {}
func (*AlterConnector) ext()            {}
func (*Comment) ext()                   {}
func (*Show) ext()                      {}
func (*ShowCreate) ext()                {}
func (*Describe) ext()                  {}
func (*Explain) ext()                   {}
func (*Flush) ext()                     {}
func (*Wait) ext()                      {}
func (*Recover) ext()                   {}
func (*Check) ext()                     {}
func (*Backfill) ext()                  {}
func (*CancelJobs) ext()                {}
func (*Kill) ext()                      {}
func (*CopySubscribe) ext()             {}
func (*DeclareSubscriptionCursor) ext() {}
func (*FetchWith) ext()                 {}
