# One static binary on an empty base: built without cgo (the SQL grammar then comes
# as WebAssembly), run as a user without rights, data in /data.
FROM golang:1.26 AS build
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/streamdb ./cmd/streamdb \
 && mkdir -p /out/data

FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.title="streamdb" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/streamdb /streamdb
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
EXPOSE 4566 4567
ENTRYPOINT ["/streamdb"]
CMD ["serve", "--data", "/data", "--listen", "0.0.0.0:4566", "--http", "0.0.0.0:4567"]
