import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { configFile, runCommand } from '../fixtures/command.ts';
import { OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { startServer } from '../fixtures/server.ts';
import { json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { report, upstreamForTest } from '../tools/support.ts';
import { initialize, post, rpc } from './support/door.ts';
import { RESOURCE, startIssuer } from './support/issuer.ts';

describe('the reference server with authentication, as a process', () => {
  verifies('auth.not-recorded', async () => {
    const issuer = await startIssuer();
    const upstream = await upstreamForTest();
    upstream.on('/Tokyo', json(report()));
    const collector = await OtlpReceiver.start();
    onTestFinished(() => collector.stop());
    const secret = 'static-token-of-the-build-0123456789';
    const server = await startServer(
      {
        CI_TOKEN: secret,
        WEATHER_API_URL: upstream.url,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_LOG_LEVEL: 'debug',
      },
      {
        http: {
          rateLimit: false,
          auth: {
            resource: RESOURCE,
            jwt: { issuer: issuer.issuer, jwksUri: issuer.jwksUri },
            tokens: [{ principal: 'ci', env: 'CI_TOKEN' }],
          },
        },
      },
    );
    const good = await issuer.token();
    const ended = await issuer.token({ exp: 1 });
    const guessed = 'guessed-token-of-somebody-9876543210';
    const send = (token: string, body: unknown, headers = {}) =>
      post(server, body, { authorization: `Bearer ${token}`, ...headers });

    const bodies: string[] = [];
    const statuses: number[] = [];
    for (const token of [secret, good, ended, guessed]) {
      const opened = await send(token, initialize());
      statuses.push(opened.status);
      bodies.push(await opened.text());
      const id = opened.headers.get('mcp-session-id');
      const call = rpc(1, 'tools/call', { name: 'get_weather', arguments: { city: 'Tokyo' } });
      const called = await send(token, call, id === null ? {} : { 'mcp-session-id': id });
      bodies.push(await called.text());
      const inUrl = { url: `${server.url}?access_token=${token}` };
      bodies.push(await (await post(inUrl, initialize())).text());
    }
    issuer.state.behaviour = (_req, res) => res.writeHead(500).end();
    const unknown = await issuer.token({}, { header: { kid: 'new' } });
    bodies.push(await (await send(unknown, initialize())).text());
    expect(statuses).toEqual([200, 200, 401, 401]);
    expect(bodies.join()).toContain('Tokyo');
    expect(await server.stop()).toBe(0);

    expect(upstream.count()).toBeGreaterThan(0);
    expect(collector.spans().map(({ name }) => name)).toContain('tools/call get_weather');
    const recorded = {
      stdout: server.stdout(),
      stderr: server.stderr(),
      telemetry: JSON.stringify(collector.requests),
      upstream: JSON.stringify(upstream.requests),
      answers: bodies.join('\n'),
    };
    expect(recorded.stderr).toContain('serves MCP at');
    for (const token of [secret, good, ended, guessed, unknown]) {
      const pieces = [token, ...token.split('.').slice(1), token.slice(0, 20)];
      const digest = createHash('sha256').update(token);
      for (const piece of [...pieces, digest.digest('hex')]) {
        for (const [where, text] of Object.entries(recorded)) {
          expect([where, piece, text.includes(piece)]).toEqual([where, piece, false]);
        }
      }
    }
  });

  test('a door that would let nobody in is refused before it opens', async () => {
    const auth = { tokens: [{ principal: 'ci', env: 'CI_TOKEN' }] };
    const file = configFile({ http: { auth } });
    const args = ['--http', '--port', '0', '--config', file];
    const { code, stderr } = await runCommand(args, { CI_TOKEN: 'short' });
    expect([code, stderr]).toEqual([
      2,
      `error: ${file} cannot be used:\n  - auth: the token of "ci": the variable CI_TOKEN has fewer than 16 characters; make one with: openssl rand -hex 32\n`,
    ]);
    const wrong = configFile({ http: { auth: { tokens: [] }, prot: 1 } });
    expect(await runCommand(['--http', '--port', '0', '--config', wrong])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        '  - http.auth must have jwt, tokens or both: without any nobody could call\n',
      ),
    });
  });
});
