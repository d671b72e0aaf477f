// SPDX-License-Identifier: Apache-2.0

// Command tills is a load: connections to a database that each book a sale, look at their paper for a while, and commit. All
// book in the same row, or each in its own.
package main

import (
	"context"
	"database/sql"
	"flag"
	"log"
	"time"

	_ "github.com/go-sql-driver/mysql"
)

func main() {
	database := flag.String("database", "root@tcp(127.0.0.1:3306)/shop", "data source name")
	tills := flag.Int("tills", 8, "connections")
	paper := flag.Duration("paper", 5*time.Millisecond, "between the booking and the commit")
	own := flag.Bool("own", false, "a row for each")
	flag.Parse()
	db, err := sql.Open("mysql", *database)
	if err != nil {
		log.Fatal("tills: ", err)
	}
	failed := make(chan error)
	for till := range *tills {
		row := 1
		if *own {
			row += till
		}
		go func() { failed <- sell(db, row, *paper) }()
	}
	log.Fatal("tills: ", <-failed)
}

func sell(db *sql.DB, row int, paper time.Duration) error {
	ctx := context.Background()
	till, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	for {
		if _, err := till.ExecContext(ctx, "BEGIN"); err != nil {
			return err
		}
		if _, err := till.ExecContext(ctx, "UPDATE sales SET cents = cents + 1 WHERE id = ?", row); err != nil {
			return err
		}
		time.Sleep(paper)
		if _, err := till.ExecContext(ctx, "COMMIT"); err != nil {
			return err
		}
		time.Sleep(paper)
	}
}
