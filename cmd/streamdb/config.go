package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"
)

// configPath is the file that the environment names, if it names one.
func configPath() []string {
	if p := os.Getenv("STREAMDB_CONFIG"); p != "" {
		return []string{p}
	}
	return nil
}

// A tomlValues is a configuration file: flags by name, with _ for -, at the top level or in the table [serve].
type tomlValues map[string]any

func tomlFile(r io.Reader) (kong.Resolver, error) {
	var doc map[string]any
	if err := toml.NewDecoder(r).Decode(&doc); err != nil {
		return nil, err
	}
	t := tomlValues{}
	add := func(vals map[string]any) {
		for k, v := range vals {
			t[strings.ReplaceAll(k, "_", "-")] = v
		}
	}
	if table, ok := doc["serve"].(map[string]any); ok {
		delete(doc, "serve")
		add(table)
	}
	add(doc)
	return t, nil
}

// Validate refuses names that are no flags.
func (t tomlValues) Validate(app *kong.Application) error {
	known := map[string]bool{}
	for _, node := range app.Children {
		for _, f := range node.Flags {
			known[f.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if !known[name] || name == "config" {
			return fmt.Errorf("configuration file: there is no flag --%s", name)
		}
	}
	return nil
}

// Resolve gives a flag's value where neither the command line nor the environment does.
func (t tomlValues) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Tag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return nil, nil
		}
	}
	switch v := t[flag.Name].(type) {
	case nil, bool:
		return v, nil
	case string, int64, float64:
		return fmt.Sprint(v), nil
	default:
		return nil, fmt.Errorf("configuration file: %s is not one value", flag.Name)
	}
}

// A size is a number of bytes, written with a unit or without.
type size int64

var units = []struct {
	name  string
	bytes float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40},
	{"b", 1}, {"", 1},
}

// UnmarshalText reads 512MiB, 2GB, 1.5g, 1000000.
func (s *size) UnmarshalText(text []byte) error {
	word := strings.ToLower(strings.TrimSpace(string(text)))
	for _, u := range units {
		num, ok := strings.CutSuffix(word, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(n >= 0) || n*u.bytes > 1<<62 {
			break
		}
		*s = size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 512MiB or 2GB", text)
}
