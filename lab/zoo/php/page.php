<?php
// SPDX-License-Identifier: Apache-2.0
$rows = [];
for ($i = 0; $i < 40; $i++) {
    $rows[] = ['id' => $i, 'name' => "row $i", 'sum' => md5("row $i")];
}
header('Content-Type: application/json');
echo json_encode($rows);
