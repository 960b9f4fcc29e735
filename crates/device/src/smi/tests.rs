use std::fmt::Write;

use super::*;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/smi.txt");
const PORTS: u8 = 4;

/// An SMP whose initial path leads out of ports 3, 4, 3, 4 … and whose return path out of ports 1, 2, 1, 2 ….
fn smp(direction: bool, pointer: u8, count: u8, dr_slid: Lid, dr_dlid: Lid) -> [u8; MAD_SIZE] {
    let mut smp = [0; MAD_SIZE];
    DirectedSmp::direction.set(&mut smp, direction);
    DirectedSmp::hop_pointer.set(&mut smp, pointer);
    DirectedSmp::hop_count.set(&mut smp, count);
    DirectedSmp::dr_slid.set(&mut smp, dr_slid);
    DirectedSmp::dr_dlid.set(&mut smp, dr_dlid);
    DirectedSmp::initial_path.set(&mut smp, std::array::from_fn(|i| PortNum(4 - (i % 2) as u8)));
    DirectedSmp::return_path.set(&mut smp, std::array::from_fn(|i| PortNum(2 - (i % 2) as u8)));
    smp
}

fn here(is_switch: bool, arrival: Arrival, port: u8) -> Here {
    Here { is_switch, ports: PORTS, port: PortNum(port), arrival }
}

/// The pointers worth a row for a hop count.
fn pointers(count: u8) -> Vec<u8> {
    let mut pointers = vec![0, 1, 2, count.saturating_sub(1), count, count.saturating_add(1)];
    pointers.extend([count.saturating_add(2), 255]);
    pointers.sort_unstable();
    pointers.dedup();
    pointers
}

fn lid_name(lid: Lid) -> String {
    if lid == Lid::PERMISSIVE { "any".to_owned() } else { lid.to_string() }
}

fn row(out: &mut String, here: Here, smp: &mut [u8; MAD_SIZE]) {
    let before = *smp;
    let (direction, pointer) = (DirectedSmp::direction.get(smp), DirectedSmp::hop_pointer.get(smp));
    let (count, arrival) = (DirectedSmp::hop_count.get(smp), format!("{:?}", here.arrival));
    let (dr_slid, dr_dlid) = (DirectedSmp::dr_slid.get(smp), DirectedSmp::dr_dlid.get(smp));
    let step = step(smp, here);
    let mut done = match step {
        Step::Discard => "discard".to_owned(),
        Step::Deliver => "deliver".to_owned(),
        Step::Leave(port) => format!("leave by {port}"),
        Step::LidRoute(lid) => format!("go on to LID {lid}"),
    };
    if step != Step::Discard && DirectedSmp::hop_pointer.get(smp) != pointer {
        write!(done, ", pointer {}", DirectedSmp::hop_pointer.get(smp)).unwrap();
    }
    let noted = (1..64).find(|&i| smp[RETURN_PATH.start + i] != before[RETURN_PATH.start + i]);
    if let Some(index) = noted.filter(|_| step != Step::Discard) {
        write!(done, ", return[{index}] = {}", smp[RETURN_PATH.start + index]).unwrap();
    }
    let node = if here.is_switch { "switch" } else { "HCA" };
    let (d, from, to) = (u8::from(direction), lid_name(dr_slid), lid_name(dr_dlid));
    writeln!(out, "{d} {node:<6} {arrival:<5} {count:>3} {pointer:>3}  {from:<4} {to:<4} {done}").unwrap();
}

fn whole_table() -> String {
    let mut out = "D node   from  cnt ptr  slid dlid done\n".to_owned();
    for direction in [false, true] {
        for is_switch in [true, false] {
            for arrival in [Arrival::Local, Arrival::Link, Arrival::Lid] {
                for count in [0, 1, 2, 5, 63, 64, 255] {
                    for pointer in pointers(count) {
                        for dr_slid in [Lid::PERMISSIVE, Lid(10)] {
                            for dr_dlid in [Lid::PERMISSIVE, Lid(20)] {
                                let mut smp = smp(direction, pointer, count, dr_slid, dr_dlid);
                                row(&mut out, here(is_switch, arrival, 3), &mut smp);
                            }
                        }
                    }
                }
            }
        }
    }
    out
}

/// Every row of direction, node, arrival, count, pointer and LIDs. `WEFT_BLESS=1` writes the file again.
#[test]
fn golden_table() {
    let table = whole_table();
    if std::env::var_os("WEFT_BLESS").is_some() {
        std::fs::write(GOLDEN, &table).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    for (number, (found, wanted)) in table.lines().zip(golden.lines()).enumerate() {
        assert_eq!(found, wanted, "line {}", number + 1);
    }
    assert_eq!(table.lines().count(), golden.lines().count());
}

/// The rules as IBA 14.2.2 states them, written down a second time: what each row must come to.
fn expected(
    direction: bool,
    is_switch: bool,
    arrival: Arrival,
    count: u8,
    pointer: u8,
    tail: bool,
) -> &'static str {
    let (c, p) = (i32::from(count), i32::from(pointer));
    if c > 63 {
        return "discard";
    }
    let through = is_switch && arrival == Arrival::Link;
    let end = if !tail {
        "deliver"
    } else if is_switch {
        "lid"
    } else {
        "discard"
    };
    // `tail`: the LID of that direction's far end is given.
    let outgoing = !direction;
    let starts = arrival != Arrival::Link && p == if outgoing { 0 } else { c + 1 } && c > 0;
    if starts {
        return if arrival == Arrival::Local || is_switch { "leave" } else { "discard" };
    }
    let (middle, last) = if outgoing { (0 < p && p < c, c) } else { (1 < p && p <= c, 1) };
    if middle {
        return if through { "leave" } else { "discard" };
    }
    let arrived = if c > 0 { arrival == Arrival::Link } else { arrival != Arrival::Link };
    if p == last && arrived && (outgoing || c == 0 || p <= c) {
        return end;
    }
    let home = if outgoing { c + 1 } else { 0 };
    if p == home && arrival == Arrival::Lid { "deliver" } else { "discard" }
}

#[test]
fn every_row_follows_the_rules() {
    let mut rows = 0;
    for direction in [false, true] {
        for is_switch in [true, false] {
            for arrival in [Arrival::Local, Arrival::Link, Arrival::Lid] {
                for count in 0..=70 {
                    for pointer in 0..=72 {
                        for tail in [false, true] {
                            let far = if tail { Lid(9) } else { Lid::PERMISSIVE };
                            let mut smp = smp(direction, pointer, count, far, far);
                            // An HCA leaves by the port that it is at, and by no other.
                            let ours = PortNum(3);
                            DirectedSmp::initial_path.set(&mut smp, [ours; 64]);
                            DirectedSmp::return_path.set(&mut smp, [ours; 64]);
                            let found = match step(&mut smp, here(is_switch, arrival, 3)) {
                                Step::Discard => "discard",
                                Step::Deliver => "deliver",
                                Step::Leave(_) => "leave",
                                Step::LidRoute(_) => "lid",
                            };
                            let wanted = expected(direction, is_switch, arrival, count, pointer, tail);
                            let row = (direction, is_switch, arrival, count, pointer, tail);
                            assert_eq!(found, wanted, "{row:?}");
                            rows += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(rows, 2 * 2 * 3 * 71 * 73 * 2);
}

#[test]
fn a_walk_there_and_back() {
    // Out of port 3 of the HCA, out of port 4 of the first switch, to the second switch by its port 2.
    let any = Lid::PERMISSIVE;
    let mut smp = smp(false, 0, 2, any, any);
    let (hca, first) = (here(false, Arrival::Local, 3), here(true, Arrival::Link, 1));
    DirectedSmp::initial_path.set(&mut smp, std::array::from_fn(|i| PortNum([0, 3, 4][i.min(2)])));
    assert_eq!(step(&mut smp, hca), Step::Leave(PortNum(3)));
    assert_eq!(step(&mut smp, first), Step::Leave(PortNum(4)));
    assert_eq!(step(&mut smp, here(true, Arrival::Link, 2)), Step::Deliver);
    let (pointer, path) = (DirectedSmp::hop_pointer.get(&smp), DirectedSmp::return_path.get(&smp));
    assert_eq!((pointer, path[1], path[2]), (3, PortNum(1), PortNum(2)));
    DirectedSmp::direction.set(&mut smp, true);
    assert_eq!(step(&mut smp, here(true, Arrival::Local, 2)), Step::Leave(PortNum(2)));
    assert_eq!(step(&mut smp, here(true, Arrival::Link, 4)), Step::Leave(PortNum(1)));
    assert_eq!(step(&mut smp, here(false, Arrival::Link, 3)), Step::Deliver);
    assert_eq!(DirectedSmp::hop_pointer.get(&smp), 0);
}

#[test]
fn a_port_that_is_not_there() {
    for (port, is_switch) in [(0, true), (PORTS + 1, true), (255, true), (2, false), (0, false)] {
        let mut smp = smp(false, 0, 1, Lid::PERMISSIVE, Lid::PERMISSIVE);
        DirectedSmp::initial_path.set(&mut smp, [PortNum(port); 64]);
        assert_eq!(step(&mut smp, here(is_switch, Arrival::Local, 1)), Step::Discard, "port {port}");
    }
}
