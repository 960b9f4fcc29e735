//! Images: the same wherever they have been, and refused when they are not what they say.

use weft_machine::{Machine, Time};
use weft_wire::{Guid, Lid};

use super::network::{Dice, Network, Weather, guid, lid};
use super::suspended::place;
use super::{open, options, seeds, spec};
use crate::stack::{IMAGE_BYTES_MAX, Image, ImageError, Input, Place, Stack};
use crate::traffic::{Command, Destination, FlowId, FlowSpec, MoveBy, Transport, Work};

/// Host 0 is suspended amid everything that it can do.
fn busy(seed: u64) -> Network {
    let mut network = Network::new(3, &options(), seed);
    network.weather = Weather { loss: 20, late: 30, twice: 10, fecn: 0 };
    open(&mut network, 0, 1, FlowSpec { move_by: MoveBy::Migrate, ..spec(1, 1) });
    open(&mut network, 1, 0, FlowSpec { bytes_per_second: Some(50_000_000), ..spec(2, 0) });
    open(&mut network, 0, 2, FlowSpec { work: Work::PingPong, ..spec(3, 2) });
    let others = (0..3).map(guid).collect();
    let to = Destination::Mix { hot_spot: Some(guid(2)), hot_permille: 300, others, seed };
    let transport = Transport::UnreliableDatagram;
    let mix =
        FlowSpec { to, transport, message_bytes: 2048, bytes_per_second: Some(300_000_000), ..spec(9, 1) };
    let (flow, work, message_bytes) = (FlowId(9), Work::Stream, 2048);
    for host in 0..3 {
        network.command(host, Command::Expect { flow, from: None, transport, work, message_bytes });
    }
    network.command(0, Command::Open(mix));
    let span = Time::from_micros(1000 + network.dice.below(500));
    network.run(span);
    network.hot_spot(0, lid(1), 2, true);
    network.suspend(0);
    network
}

fn taken(image: Image, place: &Place) -> Result<Stack, ImageError> {
    let mut stack = Stack::new(options());
    stack.import(image, Time::from_secs(8), place).map(|()| stack)
}

#[test]
fn an_image_is_the_same_after_every_journey() {
    for seed in seeds(10) {
        let network = busy(seed);
        let image = network.hosts[0].export().unwrap();
        assert_eq!(network.hosts[0].export().unwrap(), image);
        assert_eq!((image.epoch(), image.identity().guid, image.identity().lid), (0, guid(0), lid(0)));
        assert_eq!((image.flows(), image.identity().p_keys.len()), (4, 1));
        assert!(image.unacknowledged() > 0 && image.suspended_at() == network.now);
        let bytes = image.encode().unwrap();
        assert!(bytes.len() < 20_000, "{}", bytes.len());
        assert_eq!(Image::decode(&bytes).unwrap(), image, "WEFT_SEED={seed}");
        let text = serde_json::to_string(&image).unwrap();
        assert_eq!(serde_json::from_str::<Image>(&text).unwrap(), image, "WEFT_SEED={seed}");
        let stack = taken(image.clone(), &place(0, 0)).unwrap();
        assert!(stack.is_suspended() && stack.epoch() == 1);
        assert_eq!(stack.reports(), network.hosts[0].reports());
        assert_eq!(stack.counts(), network.hosts[0].counts());
        let again = stack.export().unwrap();
        assert_eq!(again.epoch(), 1);
        assert_eq!(again.at_epoch(0), image, "WEFT_SEED={seed}: it says the same of another epoch");
    }
}

/// The names of all fields.
fn names(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            found.push(name.clone());
            names(value, found);
        }),
        serde_json::Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

#[test]
fn a_state_with_other_fields_has_another_version() {
    let mut stack = Stack::new(options());
    let others = vec![guid(1), guid(2)];
    let to = Destination::Mix { hot_spot: None, hot_permille: 0, others, seed: 1 };
    let mix =
        FlowSpec { to, transport: Transport::UnreliableDatagram, bytes_per_second: Some(1), ..spec(2, 1) };
    let answers = FlowSpec { work: Work::PingPong, ..spec(1, 1) };
    for command in [Command::Open(mix), Command::Open(answers)] {
        stack.handle_input(Time::ZERO, Input::Command(command));
    }
    stack.suspend(Time::ZERO);
    let image = serde_json::to_value(stack.export().unwrap()).unwrap();
    let mut found = Vec::new();
    names(&image, &mut found);
    // In which order an object has its fields is a feature of serde_json.
    found.sort();
    let known = (image["version"].as_u64(), found.len(), crc32fast::hash(found.join(" ").as_bytes()));
    assert_eq!(
        known,
        (Some(8), 345, 0xcfa8_254c),
        "fields have changed: increase STATE_VERSION, and change this"
    );
}

#[test]
fn an_image_for_another_place_is_refused_without_effect() {
    let network = busy(1);
    let image = network.hosts[0].export().unwrap();
    let good = place(0, 0);
    let refused = |place: &Place| taken(image.clone(), place).unwrap_err();
    let foreign = refused(&Place { guid: Guid(5), ..good.clone() });
    let words = "the image is of port 0x0000000000000100, and port 0x0000000000000005 moves";
    assert_eq!(foreign.to_string(), words);
    let stale = refused(&Place { from_epoch: 3, epoch: 4, ..good.clone() });
    assert_eq!(stale, ImageError::Stale { found: 0, expected: 3 });
    assert_eq!(refused(&Place { epoch: 0, ..good.clone() }), ImageError::OldEpoch { given: 0, known: 0 });
    assert_eq!(refused(&Place { lid: Some(Lid(0xc001)), ..good.clone() }), ImageError::Lid(Lid(0xc001)));
    // Once more is once too often, and a stack in use is not overwritten.
    let mut stack = taken(image.clone(), &good).unwrap();
    let known = stack.export().unwrap();
    let twice = stack.import(image.clone(), Time::ZERO, &good);
    assert_eq!(twice, Err(ImageError::OldEpoch { given: 1, known: 1 }));
    assert_eq!(stack.export().unwrap(), known);
    stack.resume(Time::from_secs(9));
    assert_eq!(stack.export(), Err(ImageError::Running));
    let occupied = stack.import(image, Time::ZERO, &Place { epoch: 2, ..good });
    assert_eq!(occupied, Err(ImageError::Occupied(4)));
    assert_eq!((stack.suspension_counts().import_refused, stack.suspension_counts().imported), (2, 1));
}

#[test]
fn a_cut_or_damaged_image_is_refused() {
    let image = busy(1).hosts[0].export().unwrap();
    let bytes = image.encode().unwrap();
    for length in 0..bytes.len() {
        assert!(Image::decode(&bytes[..length]).is_err(), "{length} bytes are no image");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(Image::decode(&longer), Err(ImageError::Unreadable("1 bytes are left over".to_owned())));
    let huge = vec![0; IMAGE_BYTES_MAX + 1];
    assert_eq!(Image::decode(&huge), Err(ImageError::TooLarge { bytes: huge.len() }));
    let mut other = bytes.clone();
    other[0] += 1;
    assert!(matches!(Image::decode(&other), Err(ImageError::Version { found }) if found > 1));
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // The same number may be written in two ways.
        assert!(
            Image::decode(&flipped).is_ok_and(|other| other == image) || Image::decode(&flipped).is_err()
        );
    }
    // As text, too: a number that is changed is found.
    let text = serde_json::to_string(&image).unwrap();
    let changed = text.replacen("\"retries\":60", "\"retries\":61", 1);
    assert_ne!(text, changed);
    let damaged = taken(serde_json::from_str(&changed).unwrap(), &place(0, 0));
    assert!(matches!(damaged, Err(ImageError::Damaged { .. })));
}

#[test]
fn a_mutated_image_is_refused_or_harmless() {
    let mut accepted = 0;
    for seed in seeds(150) {
        let mut network = busy(1);
        let bytes = network.hosts[0].export().unwrap().encode().unwrap();
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut mutated = bytes.clone();
        for _ in 0..=dice.below(3) {
            let at = dice.below(mutated.len() as u64) as usize;
            match dice.below(4) {
                0 => mutated[at] = dice.below(256) as u8,
                1 => mutated[at] ^= 1 << dice.below(8),
                2 => mutated[at] = [0, 1, 250, 251, 252, 253, 254, 255][dice.below(8) as usize],
                _ => drop(mutated.remove(at)),
            }
        }
        let Some(image) = Image::resealed(&mutated) else { continue };
        let place = Place {
            guid: image.identity().guid,
            from_epoch: image.epoch(),
            epoch: u64::MAX,
            renames: false,
            lid: None,
        };
        let Ok(stack) = taken(image, &place) else { continue };
        accepted += 1;
        network.replace(0, stack, Time::from_secs(8), 100);
        network.tell(0, |_| {});
        network.resume(0);
        network.run(Time::from_micros(300));
    }
    assert!(accepted > 0 || std::env::var("WEFT_SEED").is_ok());
}
