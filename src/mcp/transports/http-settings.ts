/**
 * @module
 * Settings of the HTTP door, validated, with their defaults.
 */
import { z } from 'zod';
import { MAX_TIMER_DELAY } from '../../resilience/clock.ts';

const milliseconds = z.number().min(1).max(MAX_TIMER_DELAY);
const count = z.int().min(1).max(1_000_000);

const endpointPath = z
  .string()
  .regex(/^\/(?!(?:healthz|readyz)$)[^?#\s]*$/)
  .describe('a path that starts with "/", without "?" and "#", and neither /healthz nor /readyz');

const hostName = z
  .string()
  .regex(/^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?$/)
  .describe('a host name, such as mcp.example');

/** Validates the settings of `serveHttp` and fills in what is absent. */
export const httpSettingsSchema = z.strictObject({
  /** Path of the MCP endpoint. */
  path: endpointPath.default('/mcp'),
  /**
   * False: no sessions; each POST is served by a server of its own, and there is neither a GET
   * stream nor a way to ask the client anything.
   */
  sessions: z.boolean().default(true),
  /** Names, without a port, that `Host` may have besides loopback and the bound host. */
  allowedHosts: z.array(hostName).default([]),
  /** Origins, such as `https://app.example`, that may call from a browser (CORS). */
  allowedOrigins: z.array(z.url()).default([]),
  /** Proxies in front that append to `X-Forwarded-For`; 0 ignores that header. */
  trustProxy: z.int().min(0).max(10).default(0),
  /** Largest request body, in bytes. */
  maxBodyBytes: z
    .int()
    .min(1)
    .default(4 * 1024 * 1024),
  /** Messages in one batch at most (2025-03-26 only). */
  maxBatch: count.default(100),
  /** Connections at one time; one more is told so with 503. */
  maxConnections: count.default(100),
  /** Milliseconds in which a request must have arrived, headers and body. */
  readTimeout: milliseconds.default(10_000),
  /** Requests per client address (per /64 network for IPv6), or per principal where it is known who calls; `false` for no limit. */
  rateLimit: z
    .union([
      z.literal(false),
      z.strictObject({ limit: count, interval: milliseconds.default(1_000), burst: count }),
    ])
    .default({ limit: 10, interval: 1_000, burst: 20 }),
  /** Sessions at one time. One more ends the session that has been idle longest. */
  maxSessions: count.default(1_000),
  /**
   * Milliseconds after the last request, or after the last running call ended, until a session
   * ends. An open GET stream does not keep it.
   */
  sessionIdleTimeout: milliseconds.default(30 * 60_000),
  /** Milliseconds between comments that keep an event stream from looking dead. */
  keepAliveInterval: milliseconds.default(15_000),
  /**
   * Bytes that may wait, beside the largest message, for a client that does not read its
   * stream; beyond, it is cut off.
   */
  maxUnreadBytes: z
    .int()
    .min(1)
    .default(16 * 1024 * 1024),
  /** Milliseconds that running calls get when the door closes. */
  drainTimeout: z.number().min(0).max(MAX_TIMER_DELAY).default(5_000),
});

/** What `serveHttp` takes. */
export type HttpSettings = z.input<typeof httpSettingsSchema>;

/** With every default filled in. */
export type ResolvedHttpSettings = z.output<typeof httpSettingsSchema>;
