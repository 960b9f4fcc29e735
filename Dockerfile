# A later release fills this in. The programs that containers will run exist: `weft-agent`, `weft-sm` and `weft-pm`.
