// Command streamdb is the database server: flags, wiring and signals. Everything
// it does is in serve.go's run, in the order in which it happens.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/alecthomas/kong"
)

// version is set by the linker.
var version = "dev"

// cli is the command line.
type cli struct {
	Serve   serve      `cmd:"" help:"Run the database."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

type versionCmd struct{}

func (versionCmd) Run(out io.Writer) error {
	_, err := fmt.Fprintf(out, "streamdb %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func main() {
	var c cli
	k, err := newParser(&c, os.Stdout)
	if err != nil {
		fail(err)
	}
	kctx, err := k.Parse(os.Args[1:])
	k.FatalIfErrorf(err)
	if err := kctx.Run(); err != nil {
		fail(err)
	}
}

// newParser makes the parser of the command line: flags beat STREAMDB_… variables, which beat the file of --config.
func newParser(c *cli, out io.Writer) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("streamdb"),
		kong.Description("A streaming database: PostgreSQL's protocol in front, materialized views that are always fresh behind."),
		kong.DefaultEnvars("STREAMDB"),
		kong.Configuration(tomlFile, configPath()...),
		kong.UsageOnError(),
		kong.BindTo(out, (*io.Writer)(nil)),
		kong.BindTo(context.Background(), (*context.Context)(nil)),
	)
}

// fail ends the process with the reason.
func fail(err error) {
	fmt.Fprintf(os.Stderr, "streamdb: %v\n", err)
	os.Exit(1)
}
