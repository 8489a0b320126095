package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A Postgres is a running PostgreSQL 15: the judge. Nothing it holds is meant to last.
type Postgres struct {
	Bin  string // the directory of its programs
	addr string
	dir  string
	cmd  *exec.Cmd
	log  logTail
	done chan struct{}
}

// FindPostgres returns the directory of PostgreSQL 15's programs.
func FindPostgres() (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/15*/bin")
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, d := range dirs {
		out, err := exec.Command(filepath.Join(d, "postgres"), "--version").Output()
		if err == nil && strings.Contains(string(out), ") 15.") {
			if _, err := os.Stat(filepath.Join(d, "initdb")); err == nil {
				return d, nil
			}
		}
	}
	return "", errors.New("PostgreSQL 15 is not installed; `make deps` installs it (as root: apt-get install postgresql-15)")
}

// StartPostgres makes an empty cluster (text in byte order, UTF-8, time zone UTC,
// user root, database dev) in a directory of its own and starts it on a free
// port. PostgreSQL refuses to run as root: there the user postgres is taken.
// durable keeps fsync on, as a fair opponent in measurements.
func StartPostgres(ctx context.Context, durable bool) (*Postgres, error) {
	bin, err := FindPostgres()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "judge-")
	if err != nil {
		return nil, err
	}
	p := &Postgres{Bin: bin, dir: dir, done: make(chan struct{})}
	if err := p.start(ctx, durable); err != nil {
		p.Stop()
		return nil, fmt.Errorf("PostgreSQL: %w\n%s", err, p.log.tail(40))
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context, durable bool) error {
	attr, err := p.owner()
	if err != nil {
		return err
	}
	data := filepath.Join(p.dir, "data")
	args := []string{"-D", data, "-A", "trust", "-U", "root", "--locale=C.UTF-8", "-E", "UTF8"}
	if !durable {
		args = append(args, "--no-sync")
	}
	initdb := exec.CommandContext(ctx, filepath.Join(p.Bin, "initdb"), args...)
	initdb.Dir, initdb.SysProcAttr, initdb.Stdout, initdb.Stderr = p.dir, attr, &p.log, &p.log
	if err := initdb.Run(); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	p.addr = fmt.Sprintf("127.0.0.1:%d", port)
	set := []string{"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port), "unix_socket_directories=", "timezone=UTC", "max_connections=60", "shared_buffers=128MB"}
	if !durable {
		set = append(set, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	args = []string{"-D", data}
	for _, s := range set {
		args = append(args, "-c", s)
	}
	p.cmd = exec.Command(filepath.Join(p.Bin, "postgres"), args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.dir, &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: attr.Credential, Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr)
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		return err
	}
	go func() { // ends with the process
		p.cmd.Wait()
		close(p.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := waitReady(ctx, p.addr, "postgres", p.done); err != nil {
		return err
	}
	return p.CreateDatabase(ctx, "dev")
}

// owner gives the directory to the user that will run the server.
func (p *Postgres) owner() (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(p.dir, uid, gid); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// Addr is where the server listens.
func (p *Postgres) Addr() string { return p.addr }

// PID is the postmaster's process id.
func (p *Postgres) PID() int { return p.cmd.Process.Pid }

// CreateDatabase makes an empty database.
func (p *Postgres) CreateDatabase(ctx context.Context, name string) error {
	conn, err := p.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0").ReadAll()
	return err
}

// Connect opens a connection as root to a database.
func (p *Postgres) Connect(ctx context.Context, database string) (*pgconn.PgConn, error) {
	return Connect(ctx, p.addr, database)
}

// Stop ends the server at once and removes its directory.
func (p *Postgres) Stop() {
	if p.cmd != nil {
		p.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-p.done:
		case <-time.After(5 * time.Second):
			p.cmd.Process.Kill()
			<-p.done
		}
	}
	os.RemoveAll(p.dir)
}

// Refresh brings all materialized views of a connection's database up to date,
// oldest first, so that views on views see fresh rows. It does nothing inside a
// transaction, where streamdb's views do not move either.
func Refresh(ctx context.Context, conn *pgconn.PgConn) error {
	if conn.TxStatus() != 'I' {
		return nil
	}
	res, err := conn.Exec(ctx, "SELECT c.oid::regclass::text FROM pg_class c WHERE relkind = 'm' ORDER BY c.oid").ReadAll()
	if err != nil {
		return err
	}
	for _, row := range res[0].Rows {
		if _, err := conn.Exec(ctx, "REFRESH MATERIALIZED VIEW "+string(row[0])).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}
