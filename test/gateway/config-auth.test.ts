import { describe, expect, onTestFinished, test } from 'vitest';
import { authenticationOf } from '../../src/gateway/config-auth.ts';
import { ConfigError } from '../../src/gateway/config-text.ts';
import { verifies } from '../fixtures/verifies.ts';
import { initialize, post, rpc } from '../mcp/support/door.ts';
import { openGateway } from './support/gateway.ts';
import { startHttpUpstream } from './support/upstream-http.ts';

const env = { ANNA: 'token-of-anna-for-the-gateway', BERT: 'token-of-bert-for-the-gateway' };
const auth = {
  tokens: [
    { principal: 'anna', env: 'ANNA' },
    { principal: 'bert', env: 'BERT' },
  ],
};
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('a gateway that asks who calls', () => {
  verifies('auth.gateway', async () => {
    const upstream = await startHttpUpstream();
    onTestFinished(() => upstream.close());
    const own = 'token-of-the-gateway-for-its-server';
    const servers = { u: { url: upstream.url, headers: { Authorization: `Bearer ${own}` } } };
    const { url, said } = await openGateway(servers, { auth }, { env });
    expect((await post({ url }, initialize())).status).toBe(401);
    const opened = await post({ url }, initialize(), bearer(env.ANNA));
    expect(opened.status).toBe(200);
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
    await opened.body?.cancel();
    const call = rpc(1, 'tools/call', {
      name: 'ok',
      arguments: { text: 'hello' },
      _meta: { 'x-vendor': 1 },
    });
    expect((await post({ url }, call, { ...session, ...bearer(env.BERT) })).status).toBe(404);
    const answer = await post({ url }, call, { ...session, ...bearer(env.ANNA) });
    expect(await answer.text()).toContain('hello');
    expect(upstream.requests.length).toBeGreaterThan(1);
    for (const { headers } of upstream.requests) {
      expect(headers.authorization).toBe(`Bearer ${own}`);
    }
    const everything = JSON.stringify([upstream.requests, said]);
    for (const token of Object.values(env)) expect(everything).not.toContain(token);
    expect(said.join('\n')).not.toContain(own);
  });

  test('settings that cannot be used name the file', () => {
    expect(() => authenticationOf(auth, 'mcp.json', { env: { ANNA: env.ANNA } })).toThrow(
      new ConfigError('mcp.json', [
        'auth: the token of "bert": the variable BERT is not set; make one with: openssl rand -hex 32',
      ]),
    );
    expect(authenticationOf(undefined, 'mcp.json', {})).toBeUndefined();
  });
});
