// SPDX-License-Identifier: Apache-2.0
//! PHP-FPM: a process for each request, behind nginx.

use anyhow::Result;

use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Aim;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by, configure, versioned};

/// PHP behind nginx.
pub static FPM: Animal = Animal {
    name: "php-fpm",
    about: "PHP-FPM with twelve processes behind nginx, a page of forty rows",
    needs: &["/etc/php"],
    builds: &[],
    stage,
};

fn stage(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    let pool = configure(cell, "fpm.conf", include_str!("../../../zoo/php/fpm.conf"))?;
    cell.write("page.php", include_str!("../../../zoo/php/page.php"))?;
    let fpm = versioned("/usr/sbin", "php-fpm", "")?;
    let fpm = cell.start(Program::installed(&fpm).named("php-fpm").args(["-F", "-R", "-n", "-y"]).args([pool]))?;
    let socket = cell.dir().join("php.sock");
    let stop = cell.stop.clone();
    stop.poll(std::time::Duration::from_secs(10), || Ok(socket.exists()))?;
    let conf = configure(cell, "nginx.conf", include_str!("../../../zoo/php/nginx.conf"))?;
    cell.start(Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]).in_group("nginx"))?;
    cell.wait_for_port(PORT)?;
    by(Aim::Pid(fpm), Visitors::web("/page.php"))
}
