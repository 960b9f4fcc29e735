# weft in a container: one program, which is every process of a laboratory, and nothing else. No shell, no package manager, nothing
# to write to but what is mounted. Only instructions that builders without BuildKit know.
#
#   cargo xtask image          packs a program that was built outside; nothing is pulled (target `pack`)
#   docker build -t weft .     builds it in a container of RUST, and needs the network

# `cargo xtask image` gives it a folder with `rootfs`. In the repository itself there is none, and the stage holds only a licence.
FROM scratch AS pack
COPY LICENSE-MIT rootf[s] /
USER 65532:65532
ENTRYPOINT ["/weft"]
CMD ["--help"]

ARG RUST=rust:1.95-bookworm
FROM ${RUST} AS build
WORKDIR /src
COPY . .
RUN cargo xtask image --stage /staged

FROM scratch AS weft
COPY --from=build /staged/rootfs /
USER 65532:65532
ENTRYPOINT ["/weft"]
CMD ["--help"]
