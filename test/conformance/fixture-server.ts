/**
 * @module
 * The server that the official conformance suite expects behind the door it tests: its tool,
 * resource and prompt names (scenarios of @modelcontextprotocol/conformance 0.1.16), on the
 * SDK's own server. What is tested is the transport in front of it.
 */

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CreateMessageResultSchema,
  ElicitResultSchema,
  type ServerNotification,
  type ServerRequest,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

/** A red pixel. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
/** A WAV file without a sound in it. */
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

const text = (value: string) => ({ type: 'text' as const, text: value });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

const addTools = (server: McpServer): void => {
  const simple = (name: string, content: () => object[]) =>
    server.registerTool(name, { description: name, inputSchema: {} }, async () => ({
      content: content() as never,
    }));
  simple('test_simple_text', () => [text('This is a simple text response for testing.')]);
  simple('test_image_content', () => [{ type: 'image', data: PNG, mimeType: 'image/png' }]);
  simple('test_audio_content', () => [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]);
  const embedded = (uri: string, mimeType: string, value: string) => ({
    type: 'resource',
    resource: { uri, mimeType, text: value },
  });
  simple('test_embedded_resource', () => [
    embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
  ]);
  simple('test_multiple_content_types', () => [
    text('Multiple content types test:'),
    { type: 'image', data: PNG, mimeType: 'image/png' },
    embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ]);
  server.registerTool(
    'test_error_handling',
    { description: 'fails', inputSchema: {} },
    async () => {
      throw new Error('This tool intentionally returns an error for testing');
    },
  );

  server.registerTool(
    'test_tool_with_logging',
    { description: 'logs', inputSchema: {} },
    async (_args, extra) => {
      for (const data of [
        'Tool execution started',
        'Tool processing data',
        'Tool execution completed',
      ]) {
        await extra.sendNotification({
          method: 'notifications/message',
          params: { level: 'info', data },
        });
        await pause();
      }
      return { content: [text('Tool with logging executed successfully')] };
    },
  );
  server.registerTool(
    'test_tool_with_progress',
    { description: 'progresses', inputSchema: {} },
    async (_args, extra) => {
      const progressToken = extra._meta?.progressToken ?? 0;
      for (const progress of [0, 50, 100]) {
        const params = {
          progressToken,
          progress,
          total: 100,
          message: `Completed step ${progress} of 100`,
        };
        await extra.sendNotification({ method: 'notifications/progress', params });
        await pause();
      }
      return { content: [text(String(progressToken))] };
    },
  );
  server.registerTool(
    'test_sampling',
    { description: 'samples', inputSchema: { prompt: z.string() } },
    async ({ prompt }, extra) => {
      const result = await extra.sendRequest(
        {
          method: 'sampling/createMessage',
          params: { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 },
        },
        CreateMessageResultSchema,
      );
      const [block] = [result.content].flat();
      return {
        content: [text(`LLM response: ${block?.type === 'text' ? block.text : block?.type}`)],
      };
    },
  );

  const elicits = (name: string, argument: boolean, properties: object, required: string[] = []) =>
    server.registerTool(
      name,
      { description: name, inputSchema: argument ? { message: z.string() } : {} },
      async (args: { message?: string }, extra: Extra) => {
        const result = await extra.sendRequest(
          {
            method: 'elicitation/create',
            params: {
              message: args.message ?? 'Please review and update the form fields',
              requestedSchema: { type: 'object', properties: properties as never, required },
            },
          },
          ElicitResultSchema,
        );
        const value = JSON.stringify(result.content ?? {});
        return { content: [text(`User response: action=${result.action}, content=${value}`)] };
      },
    );
  elicits(
    'test_elicitation',
    true,
    {
      username: { type: 'string', description: "User's response" },
      email: { type: 'string', description: "User's email address" },
    },
    ['username', 'email'],
  );
  elicits('test_elicitation_sep1034_defaults', false, {
    name: { type: 'string', description: 'User name', default: 'John Doe' },
    age: { type: 'integer', description: 'User age', default: 30 },
    score: { type: 'number', description: 'User score', default: 95.5 },
    status: {
      type: 'string',
      description: 'User status',
      enum: ['active', 'inactive', 'pending'],
      default: 'active',
    },
    verified: { type: 'boolean', description: 'Verification status', default: true },
  });
  const titled = ['First', 'Second', 'Third'].map((word, index) => ({
    const: `value${index + 1}`,
    title: `${word} Option`,
  }));
  elicits('test_elicitation_sep1330_enums', false, {
    untitledSingle: { type: 'string', description: 'one', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', description: 'one, with titles', oneOf: titled },
    legacyEnum: {
      type: 'string',
      description: 'the old way',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: {
      type: 'array',
      description: 'several',
      items: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    },
    titledMulti: { type: 'array', description: 'several, with titles', items: { anyOf: titled } },
  });
};

const addResources = (server: McpServer): void => {
  const fixed = (name: string, uri: string, mimeType: string, content: object) =>
    server.registerResource(name, uri, { mimeType, description: name }, async () => ({
      contents: [{ uri, mimeType, ...content } as never],
    }));
  fixed('static-text', 'test://static-text', 'text/plain', {
    text: 'This is the content of the static text resource.',
  });
  fixed('static-binary', 'test://static-binary', 'image/png', { blob: PNG });
  fixed('watched-resource', 'test://watched-resource', 'text/plain', {
    text: 'Watched resource content',
  });
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { mimeType: 'application/json', description: 'template' },
    async (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        },
      ],
    }),
  );
  server.server.registerCapabilities({ resources: { subscribe: true, listChanged: true } });
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
};

const addPrompts = (server: McpServer): void => {
  const user = (content: object) => ({ role: 'user' as const, content: content as never });
  server.registerPrompt('test_simple_prompt', { description: 'simple' }, () => ({
    messages: [user(text('This is a simple prompt for testing.'))],
  }));
  const argument = (description: string) =>
    completable(z.string().describe(description), () => ['paris', 'park', 'party']);
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'with arguments',
      argsSchema: { arg1: argument('first'), arg2: argument('second') },
    },
    ({ arg1, arg2 }) => ({
      messages: [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
    }),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'with a resource', argsSchema: { resourceUri: z.string() } },
    ({ resourceUri }) => ({
      messages: [
        user({
          type: 'resource',
          resource: {
            uri: resourceUri,
            mimeType: 'text/plain',
            text: 'Embedded resource content for testing.',
          },
        }),
        user(text('Please process the embedded resource above.')),
      ],
    }),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'with an image' }, () => ({
    messages: [
      user({ type: 'image', data: PNG, mimeType: 'image/png' }),
      user(text('Please analyze the image above.')),
    ],
  }));
};

/** A new fixture server, for one session. */
export const createFixtureServer = (): Server => {
  const server = new McpServer(
    { name: 'conformance-fixture', version: '1.0.0' },
    { capabilities: { logging: {}, completions: {} } },
  );
  addTools(server);
  addResources(server);
  addPrompts(server);
  return server.server;
};
