/**
 * @module
 * What the scripted upstream offers. The behaviour of each tool stands in upstream-session.ts.
 */
import type { Json } from '../../../src/gateway/types.ts';

const READ = { readOnlyHint: true };
const args = (properties: Json = {}): Json => ({ type: 'object', properties });
const NUMBER = { type: 'number' };
const TEXT = { type: 'string' };

const tool = (name: string, description: string, properties?: Json, more: Json = {}): Json => ({
  name,
  description,
  inputSchema: args(properties),
  ...more,
});

/** Every tool, with what it does. */
const TOOLS: readonly Json[] = [
  tool('ok', 'answers', { text: TEXT }, { annotations: READ }),
  tool('slow', 'answers after ms', { ms: NUMBER }, { annotations: READ }),
  tool('hang', 'never answers', {}, { annotations: READ }),
  tool('err', 'a result with isError', { text: TEXT }),
  tool('throw', 'a JSON-RPC error -32603'),
  tool('rpcerr', 'a JSON-RPC error', { code: NUMBER, message: TEXT, data: {} }),
  tool('big', 'a text of n bytes', { n: NUMBER }, { annotations: READ }),
  tool('progress', 'n progress notifications, one every ms, if asked for', {
    n: NUMBER,
    ms: NUMBER,
  }),
  tool('write', 'counts its execution, waits ms; after: answer (default), die, hang', {
    key: TEXT,
    ms: NUMBER,
    after: TEXT,
  }),
  tool(
    'write-idempotent',
    'the same, and says that it may be repeated',
    { key: TEXT },
    {
      annotations: { idempotentHint: true },
    },
  ),
  tool(
    'read',
    'the same as write, and says that it only reads',
    { key: TEXT, after: TEXT },
    {
      annotations: READ,
    },
  ),
  tool('die', 'ends the process with code, or by signal', { code: NUMBER, signal: TEXT }),
  tool('banner', 'prints text to stdout, then answers', { text: TEXT }),
  tool('flood', 'prints lines to stderr, then answers', { lines: NUMBER, text: TEXT }),
  tool('env', 'the environment of the process', {}, { annotations: READ }),
  tool(
    'whoami',
    'pid, session, client and the capabilities it declared',
    {},
    { annotations: READ },
  ),
  tool('counter', 'how often it was called in this session'),
  tool('echo-meta', 'the params of this call, _meta included', {}, { annotations: READ }),
  tool('elicit', 'asks the client elicitation/create', { message: TEXT }),
  tool('sample', 'asks the client sampling/createMessage', { text: TEXT }),
  tool('roots', 'asks the client roots/list'),
  tool('ask', 'asks the client anything', { method: TEXT, params: {} }),
  tool('log', 'n log notifications', { level: TEXT, n: NUMBER }),
  tool('notify', 'sends any notification', { method: TEXT, params: {} }),
  tool('changed', 'list_changed of what: tools, prompts, resources', { what: TEXT }),
  tool('touch', 'resources/updated for uri', { uri: TEXT }),
  {
    name: 'vendor',
    title: 'Everything nobody knew',
    description: 'a result with fields and content types of its own',
    inputSchema: {
      ...args(),
      'x-schema': true,
      $schema: 'https://json-schema.org/draft/2020-12/schema',
    },
    outputSchema: { type: 'object', properties: { a: { type: 'array' } }, 'x-out': [1] },
    annotations: { ...READ, title: 'Vendor', 'x-hint': 7 },
    icons: [{ src: 'data:image/png;base64,AA==', mimeType: 'image/png', sizes: ['48x48'] }],
    _meta: { 'vendor.example/key': { nested: [null, 1.5, 'ü'] } },
    execution: { taskSupport: 'forbidden' },
    'x-vendor': { deep: { er: true } },
  },
];

/** Names that break naive code; each tool answers with its own name. */
const ODD: readonly Json[] = [
  'with space',
  'ünïcödé-工具-🔧',
  '__proto__',
  'constructor',
  'toString',
  'dots.and/slashes',
  `long-${'x'.repeat(120)}`,
].map((name) => tool(name, 'answers with its name', {}, { annotations: READ }));

/** What the vendor tool answers with. */
export const VENDOR_RESULT: Json = {
  content: [
    { type: 'text', text: 'known', annotations: { audience: ['user'], 'x-a': 1 }, 'x-block': true },
    { type: 'hologram', beam: { from: 1 }, 'x-vendor': [1, 2] },
  ],
  structuredContent: { a: [1, { b: null }], 'x-vendor': 'kept' },
  _meta: { 'vendor.example/result': { n: 1 } },
  'x-vendor': { top: true },
};

/** The tools of an upstream, in the order in which it lists them. */
export const toolsOf = (settings: {
  readonly tools?: number | undefined;
  readonly odd?: boolean | undefined;
}): readonly Json[] => [
  ...TOOLS,
  ...(settings.odd ? ODD : []),
  ...Array.from({ length: settings.tools ?? 0 }, (_, index) =>
    tool(`tool-${String(index + 1).padStart(5, '0')}`, 'answers with its name', { a: TEXT }),
  ),
];

export const RESOURCES: readonly Json[] = [
  { uri: 'test://one', name: 'one', mimeType: 'text/plain', 'x-vendor': 1 },
  { uri: 'test://two', name: 'two', size: 3 },
  { uri: 'test://missing', name: 'missing: answers -32002' },
];
export const TEMPLATES: readonly Json[] = [
  { uriTemplate: 'test://item/{id}', name: 'item', 'x-vendor': 1 },
];
export const PROMPTS: readonly Json[] = [
  {
    name: 'greet',
    description: 'greets',
    arguments: [{ name: 'who', required: true }],
    'x-vendor': 1,
  },
  { name: 'plain' },
];
