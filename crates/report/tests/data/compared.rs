// SPDX-License-Identifier: Apache-2.0
//! Recordings made up for comparisons: twenty seconds of a service at a steady load, by the cores that each of
//! its functions takes.

use recording::Recording;
use recording::text::parse;

/// A service called `name`, which also is its binary; `start` tells runs apart.
pub fn recorded(name: &str, parts: &[(&str, f64)], start: u64) -> anyhow::Result<Recording> {
    let mut text = format!(
        "meta host.arch=x86_64 host.boot_id=b host.name=web-1 target.comm={name} start_ns={start} length_ns=20e9\n"
    );
    text += "frame id=1 symbol=main module=svc\n";
    for (i, (function, _)) in parts.iter().enumerate() {
        let id = i + 2;
        text +=
            &format!("frame id={id} symbol={function} module={name}\nstack id={id} frames=[{id},1] complete=true\n");
    }
    text += &format!("setting area=file entity={name} name=build_id value=b{start}\n");
    for i in 1..=20 {
        let ripple = 1.0 + 0.01 * f64::from(i % 3);
        let cpu = (parts.iter().map(|p| p.1).sum::<f64>() * ripple * 1e9).round();
        text +=
            &format!("thread t_ns={i}e9 pid=1 tid=1 comm={name} wall_ns=1e9 cpu_ns={cpu} run_queue_ns={}\n", i * 1000);
        text += &format!("counter t_ns={i}e9 source=proc/pid entity=p1 name=write_calls value={}\n", i * 1000);
        text += &format!("counter t_ns={i}e9 source=proc/stat entity=cpu0 name=user_ns value={}\n", f64::from(i) * cpu);
        let idle = f64::from(i) * (1e9 - cpu);
        text += &format!("counter t_ns={i}e9 source=proc/stat entity=cpu0 name=idle_ns value={idle}\n");
        for (at, (_, cores)) in parts.iter().enumerate() {
            let weight = (cores * ripple * 1000.0).round();
            text += &format!("sample t_ns={i}e9 pid=1 tid=1 comm={name} stack={} weight={weight}\n", at + 2);
        }
    }
    parse(&text)
}
