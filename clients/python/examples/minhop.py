#!/usr/bin/env python3
"""A routing engine of your own: shortest paths, spread evenly over the cables.

weft routes compute topologies/psmn-x5.topo --engine exec:clients/python/examples/minhop.py
"""

import json
import sys
from collections import Counter, deque

fabric = json.load(sys.stdin)
nodes = {node["guid"]: node for node in fabric["switches"] + fabric["hosts"]}
tables = {switch["guid"]: {} for switch in fabric["switches"]}
peers = {(guid, port["port"]): port["peer_guid"] for guid in tables for port in nodes[guid]["ports"]}
hosts = Counter(port["peer_guid"] for host in fabric["hosts"] for port in host["ports"])
load = Counter()  # how many LIDs leave each switch by each port

for end in fabric["lids"]:
    hops, queue = {end["guid"]: 0}, deque([end["guid"]])
    while queue:  # breadth first from the node that has the LIDs; only switches pass packets on
        node = queue.popleft()
        for port in nodes[node]["ports"]:
            peer, is_way = port["peer_guid"], node != end["guid"] or end["port"] in (0, port["port"])
            if is_way and peer in tables and peer not in hops:
                hops[peer] = hops[node] + 1
                queue.append(peer)
    for guid in sorted(hops.keys() & tables.keys()):
        closer = [
            port["port"]
            for port in nodes[guid]["ports"]
            if hops.get(port["peer_guid"]) == hops[guid] - 1
            and (port["peer_guid"] != end["guid"] or end["port"] in (0, port["peer_port"]))
        ]
        for lid in range(end["lid"], end["lid"] + 2 ** end["lmc"]):
            # Spines first: a way down to a leaf and up again may close a circle of waiting packets. A switch's own LID is at port 0.
            best = min(closer, key=lambda port: (hosts[peers[guid, port]], load[guid, port]), default=0)
            tables[guid][lid] = best
            load[guid, best] += 1

json.dump({"tables": tables}, sys.stdout)
