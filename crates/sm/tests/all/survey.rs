//! A survey reads what a manager has left behind, and changes nothing.

use fake::{Fake, World};
use weft_machine::{Machine, Time};
use weft_mgmt::Limits;
use weft_routing::verify;
use weft_sm::{Event, GuidToLid, Input, Options, Survey, SurveyOutput, Surveyed};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, PortRef, diff};
use weft_wire::{AttributeId, PortNum, PortState};

use crate::fake;

fn fabric() -> Fabric {
    xgft(&[3, 4], &[1, 2], &GenerateOptions::default()).expect("a tree")
}

fn survey(fake: &mut Fake, tables: bool) -> (Surveyed, Vec<Event>) {
    let mut survey = Survey::new(Limits::default(), tables);
    let node = fake.fabric.node(fake.own.node);
    let port_guid = node.port(fake.own.port).expect("a port").guid;
    let input = Input::Attached { node_guid: node.guid, port_guid, port: fake.own.port };
    let mut now = Time::ZERO;
    let mut events = Vec::new();
    survey.handle_input(now, input);
    loop {
        match survey.poll_output() {
            Some(SurveyOutput::Done(surveyed)) => return (*surveyed, events),
            Some(SurveyOutput::Event(event)) => events.push(event),
            Some(SurveyOutput::Send(mad)) => {
                if let Some(answer) = fake.answer(&mad) {
                    survey.handle_input(now, Input::Receive(answer));
                }
            }
            None => {
                now = survey.poll_timeout().expect("something is in flight");
                survey.handle_timeout(now);
            }
        }
    }
}

#[test]
fn it_sees_the_fabric_as_the_manager_left_it() {
    let fabric = fabric();
    let own = PortRef::new(fabric.hosts().next().expect("a host").0, PortNum(1));
    let mut world = World::new(Fake::new(fabric, own), Options::default(), &GuidToLid::default());
    world.run_for(Time::from_secs(3));
    world.fake.sets.clear();
    world.fake.devices.iter_mut().for_each(|device| device.switch.port_state_change = true);

    let (found, events) = survey(&mut world.fake, true);
    assert_eq!(events, []);
    assert_eq!(diff(&found.fabric, &world.fake.fabric), []);
    let report = verify(&found.fabric, found.lids.as_ref().unwrap(), &found.routes, &[]);
    assert!(report.is_minimal(), "{report:?}");
    assert_eq!(found.lids.as_ref().unwrap().len(), 18);
    for cable in found.fabric.cables() {
        for end in [cable.a, cable.b] {
            assert_eq!(found.port_info(end).unwrap().port_state, PortState::Active);
        }
    }
    assert_eq!((found.silent.len(), found.unanswered), (0, 0));
    assert_eq!(world.fake.sets, Default::default());
    assert!(world.fake.devices.iter().all(|device| device.switch.port_state_change));
}

#[test]
fn without_tables_it_reads_none() {
    let fabric = fabric();
    let own = PortRef::new(fabric.hosts().next().expect("a host").0, PortNum(1));
    let mut fake = Fake::new(fabric, own);
    let (found, _) = survey(&mut fake, false);
    assert_eq!((found.smps.get_lft, found.smps.sets()), (0, 0));
    assert_eq!(found.fabric.nodes().len(), 18);
    assert!(found.lids.unwrap().is_empty());
    assert_eq!(fake.sets.get(&AttributeId::PortInfo), None);
}

#[test]
fn silent_ports_are_named_by_the_survey() {
    let fabric = fabric();
    let own = PortRef::new(fabric.hosts().next().expect("a host").0, PortNum(1));
    let mut fake = Fake::new(fabric, own);
    let (mute, _) = fake.fabric.hosts().last().unwrap();
    fake.devices[mute.index()].on = false;
    let (found, events) = survey(&mut fake, true);
    assert_eq!(found.fabric.nodes().len(), 17);
    assert_eq!(found.silent.len(), 1);
    assert!(matches!(events[..], [Event::PortSilent { .. }]));
}
