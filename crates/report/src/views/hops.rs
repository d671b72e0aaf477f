// SPDX-License-Identifier: Apache-2.0
//! Who is to blame, hop by hop: clients, the target, whom it asks.

use diagnose::hops::{Hop, Hops, Role, hops};

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// The hops.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let hops = hops(material.case, material.verdict)?;
    let blocks = vec![blames(&hops.all), note(&hops), in_numbers(&hops.all)];
    Some(Section::new("hops", "Hop by hop", blocks, Terminal::First(2)))
}

fn blames(hops: &[Hop]) -> Block {
    let columns = ["hop", "blame", "why"].map(Column::left).to_vec();
    let why = |hop: &Hop| match hop.share {
        Some(share) => format!("{} of the response time; {}", numbers::share(share), hop.why),
        None => hop.why.clone(),
    };
    let row = |hop: &Hop| vec![hop.name.clone(), hop.blame.word().to_owned(), why(hop)];
    Block::Table { title: String::new(), columns, rows: hops.iter().map(row).collect() }
}

fn note(hops: &Hops) -> Block {
    let mut text = match hops.followed {
        0 => {
            "No request was followed from end to end: what is whose is told by the sockets, where it can be.".to_owned()
        }
        followed => format!(
            "The response time is that of {} requests that were followed from end to end; what is whose goes by who had the \
             request in hand.",
            numbers::number(followed as f64)
        ),
    };
    if hops.left_out > 0 {
        text += &format!(" {} less busy hops are left out.", hops.left_out);
    }
    Block::Text { text, tone: Tone::Dim }
}

/// What the page has besides.
fn in_numbers(hops: &[Hop]) -> Block {
    let heads = ["hop", "own, mean", "all, p99", "wire, mean", "sent again"];
    let columns =
        heads.iter().enumerate().map(|(at, head)| if at == 0 { Column::left(head) } else { Column::right(head) });
    let row = |hop: &Hop| {
        let times = [hop.own, hop.p99, hop.wire].map(|time| time.map(numbers::seconds).unwrap_or_default());
        let sent_again = hop.retransmits.map(numbers::number).unwrap_or_default();
        [vec![hop.name.clone()], times.to_vec(), vec![sent_again]].concat()
    };
    let title = "In numbers (sent again: segments)".to_owned();
    let told = hops.iter().filter(|hop| hop.role != Role::Around);
    Block::Table { title, columns: columns.collect(), rows: told.map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{section, tables};

    #[test]
    fn clients_target_and_peers() {
        let text = "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=accepted port=80 looks=40 retransmits=3
             exchange role=accepted port=80 stage=response count=50 sum_ns=2e9 length_ns=[40000000] counts=[50]
             exchange role=accepted port=80 stage=service count=50 sum_ns=1e9 length_ns=[20000000] counts=[50]
             exchange role=made peer=10.0.0.9:1 stage=response count=50 sum_ns=8e8 length_ns=[20000000] counts=[50]";
        let section = section(super::view, text).unwrap();
        let tables = tables(&section);
        let hops: Vec<&str> = tables[0].iter().map(|row| row[0].as_str()).collect();
        assert_eq!(hops[..2], ["hop", "clients at 0.0.0.0:80"]);
        let why = "40.0 % of the response time; 16 ms each, asked once for each request";
        assert_eq!(tables[0][3], ["10.0.0.9:1", "innocent", why]);
        assert_eq!(tables[1][1], ["clients at 0.0.0.0:80", "", "", "", "3"]);
        assert_eq!(tables[1][3][..3], ["10.0.0.9:1", "16.0 ms", "20.0 ms"]);
        assert!(super::super::tests::section(super::view, "").is_none());
    }
}
