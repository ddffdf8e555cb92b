/**
 * @module
 * Keeps stdout for JSON-RPC alone. A stdio MCP server breaks with the first byte on stdout
 * that is not a message; banners, `console.debug`, console exporters and OpenTelemetry's own
 * diagnostics all write there by default.
 */
let guarded: NodeJS.WriteStream | undefined;

/**
 * From now on everything that writes to stdout through Node (`console.*`,
 * `process.stdout.write`, streams piped into it, workers) reaches stderr; only the returned
 * stream reaches stdout. Call it before anything else, telemetry included: a reference to
 * `process.stdout.write` taken earlier escapes it, as do native code and `fs.writeSync(1)`.
 *
 * The returned stream is `process.stdout` itself in all but `write`: same backpressure, same
 * `drain` and `error` events (a peer that went away is an `error`, EPIPE), and on a pipe what
 * was written is out before `process.exit()`. A second call returns the same stream.
 *
 * @example
 * const stdout = guardStdout();
 * await server.connect(new StdioServerTransport(process.stdin, stdout));
 */
export const guardStdout = (): NodeJS.WriteStream => {
  if (guarded) return guarded;
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);

  // A Writable of our own in between would hold back the second of two writes until the next
  // tick, and lose it if the process exits before.
  guarded = new Proxy(stdout, {
    get(target, key) {
      if (key === 'write') return write;
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

  stdout.write = stderr.write.bind(stderr);
  return guarded;
};
