import { test } from 'vitest';
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { temporaryFolder } from '../fixtures/command.ts';
import { connectCommand, serveCommand, words } from './support/command.ts';
import { startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';

test('smoke', async () => {
  const writes = join(temporaryFolder(), 'w');
  const c = await connectCommand(['wrap', '--chaos', '--name', 'files', '--', ...words(stdioUpstream({ writes }))]);
  console.log(c.client.getServerCapabilities(), c.client.getInstructions());
  console.log((await c.request('tools/list')).tools.map((t: any) => t.name).slice(-6));
  console.log(JSON.stringify(await c.request('resources/list')), JSON.stringify(await c.request('prompts/list')));
  console.log((await c.request('resources/read', { uri: 'chaos://playbook' })).contents[0].text.slice(0, 800));
  for (const f of [
    { kind: 'status', target: { upstream: 'files' } },
    { kind: 'session_loss', target: { upstream: 'files' } },
    { kind: 'status', target: { tool: 'ok' } },
    { kind: 'hang', target: { tool: 'nope' } },
    { kind: 'hang', target: { upstream: 'nope' } },
    { kind: 'hang', target: { tool: 'inject_fault' } },
  ]) console.log((await c.call('inject_fault', f)).content[0].text);
  for (const f of [
    { kind: 'tool_error', target: { tool: 'ok' }, maxCount: 1 },
    { kind: 'protocol_error', target: { tool: 'ok' }, maxCount: 1 },
    { kind: 'latency', latency: {delayMs: 300}, target: { tool: 'ok' }, maxCount: 1 },
    { kind: 'upstream_exit', target: { upstream: 'files' }, maxCount: 1 },
  ]) {
    console.log((await c.call('inject_fault', f)).content[0].text);
    console.log(JSON.stringify(await c.call('ok').catch((e) => String(e))));
  }
  console.log((await c.call('whoami')).structuredContent);
  await c.call('inject_fault', { kind: 'upstream_exit', target: { upstream: 'files' }, maxCount: 1 });
  console.log(JSON.stringify(await c.call('write', { key: 'a' })));
  const running = c.call('write', { key: 'b', after: 'hang' });
  await c.call('inject_fault', { kind: 'upstream_exit', target: { upstream: 'files' }, maxCount: 1 });
  console.log(JSON.stringify(await c.call('ok')));
  console.log(JSON.stringify(await running));
  console.log((await c.call('list_faults')).content[0].text, c.stderr());
  const up = await startHttpUpstream();
  const g = await serveCommand(['wrap', '--chaos', '--name', 'u', '--timeout', '800', '--url', up.url]);
  const d = await g.connect();
  for (const kind of ['session_loss', 'status', 'connection_refused','connection_reset','half_closed_body','dns','malformed_json','truncated_body','empty_body','oversized_body','dripping_body','wrong_content_type']) {
   for (const tool of ['ok', 'write']) {
    const a = await d.call('inject_fault', { kind, target: { upstream: 'u' } });
    if (a.isError) console.log(a.content[0].text);
    const t = Date.now();
    const r = await d.call(tool);
    console.log(kind, tool, Date.now() - t, JSON.stringify(r).slice(0, 200));
    const l = await d.call('list_faults'); console.log(l.structuredContent.faults.map((f: any) => [f.injected, f.missed]));
    await d.call('clear_fault', { all: true });
   }
    await new Promise(r => setTimeout(r, 11000));
  }
  console.log(up.record, g.child.pid);
}, 300000);
