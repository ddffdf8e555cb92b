# The server as a small image: no build tools, no root, nothing to write to.
FROM node:24.21.0-alpine AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without scripts: the image has a Node of its own.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.ts scripts/
COPY src src
RUN node scripts/build.ts

FROM node:24.21.0-alpine AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Declarations and source maps are for people who develop.
RUN npm ci --omit=dev --ignore-scripts \
 && find node_modules -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete

FROM node:24.21.0-alpine
LABEL org.opencontainers.image.title="mcp-resilience" \
      org.opencontainers.image.description="OpenTelemetry-first resilience for MCP servers" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MCP_RESILIENCE_PORT || 3000}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/cli.js"]
CMD ["serve", "--http", "--host", "0.0.0.0"]
