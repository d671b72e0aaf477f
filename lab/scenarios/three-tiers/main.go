// SPDX-License-Identifier: Apache-2.0

// Command shop answers with the orders of one customer, which it asks the database for.
package main

import (
	"database/sql"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"sync/atomic"

	_ "github.com/go-sql-driver/mysql"
)

const customers = 10_007

type order struct {
	ID, Cents int
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	database := flag.String("database", "root@tcp(127.0.0.1:3306)/shop", "data source name")
	flag.Parse()
	db, err := sql.Open("mysql", *database)
	if err != nil {
		log.Fatal("shop: ", err)
	}
	db.SetMaxIdleConns(8) // else all but two of them close after each request
	query, err := db.Prepare("SELECT id, cents FROM orders WHERE customer = ?")
	if err != nil {
		log.Fatal("shop: ", err)
	}
	var requests atomic.Int64
	http.HandleFunc("/orders", func(w http.ResponseWriter, _ *http.Request) {
		found, err := ordersOf(query, requests.Add(1)%customers)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(found)
	})
	log.Fatal("shop: ", http.ListenAndServe(*listen, nil))
}

func ordersOf(query *sql.Stmt, customer int64) ([]order, error) {
	rows, err := query.Query(customer)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []order
	for rows.Next() {
		var o order
		if err := rows.Scan(&o.ID, &o.Cents); err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, rows.Err()
}
