module story/goepoll

go 1.24
