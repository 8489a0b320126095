# One static binary on an empty base, run as a user without rights, data in /data.
FROM golang:1.26 AS build
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make static BIN=/out/streamdb VERSION=${VERSION} \
 && mkdir -p /out/data

FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.title="streamdb" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/streamdb /streamdb
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
EXPOSE 4566 4567
ENTRYPOINT ["/streamdb"]
# There is no password yet, so the server must be told that other machines may reach
# it: publish the ports on loopback, as docker-compose.yml does.
CMD ["serve", "--data", "/data", "--listen", "0.0.0.0:4566", "--http", "0.0.0.0:4567", "--insecure-listen"]
