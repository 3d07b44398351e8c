package db_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
)

func TestBatch(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Exec(`CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER NOT NULL)`)
	require.NoError(t, err)
	b := db.NewBatch(d)
	const n = 200
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			key := fmt.Sprint(i)
			if i%20 == 0 {
				errs[i] = b.Exec(t.Context(), `INSERT INTO absent VALUES (?)`, key)
				return
			}
			if errs[i] = b.Exec(t.Context(), `INSERT INTO t VALUES (?, ?)`, key, i); errs[i] == nil {
				var v int
				errs[i] = d.QueryRow(`SELECT v FROM t WHERE k = ?`, key).Scan(&v) // there when Exec returns
			}
		})
	}
	all.Wait()
	var count int
	require.NoError(t, d.QueryRow(`SELECT count(*) FROM t`).Scan(&count))
	require.Equal(t, n-n/20, count)
	for i, err := range errs {
		if i%20 == 0 {
			require.ErrorContains(t, err, "no such table", "the statement that fails has the error, and no other one")
		} else {
			require.NoError(t, err)
		}
	}
}
