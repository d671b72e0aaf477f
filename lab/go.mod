module lab

go 1.24
