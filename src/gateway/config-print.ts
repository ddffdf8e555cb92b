/**
 * @module
 * A configuration as it may be shown: with every default in it, and without a secret.
 */
import { breakerRules, type PolicySettings } from '../resilience/policy.ts';
import { resolve } from '../resilience/settings.ts';
import { spelledOut } from '../resilience/spelled-out.ts';
import type { GatewayConfig } from './config.ts';
import { masked, maskedAddress } from './config-secrets.ts';
import type { ToolRule, UpstreamConfig } from './types.ts';

const MARK = '***';

/** Everything that holds for an upstream, spelt out. */
const describeUpstream = (config: UpstreamConfig): object => {
  const { name: _name, address, policy, tools, toolBreaker, secrets, ...rest } = config;
  const rules = Object.entries(tools).map(([tool, rule]): [string, ToolRule] => [
    tool,
    { ...rule, ...(rule.policy && { policy: spelledOut(rule.policy) }) },
  ]);
  return {
    ...maskedAddress(address, secrets),
    policy: spelledOut(policy),
    tools: Object.fromEntries(rules),
    toolBreaker: toolBreaker ? resolve(breakerRules, toolBreaker, 'toolBreaker') : toolBreaker,
    ...rest,
  };
};

const describeAuth = (auth: NonNullable<GatewayConfig['auth']>): object => ({
  ...auth,
  ...(auth.tokens && {
    tokens: auth.tokens.map((token) => ({
      ...token,
      // Of a weak token it would be enough to try.
      ...(token.sha256 !== undefined && { sha256: MARK }),
    })),
  }),
});

/** The configuration that holds, as JSON can tell it; values of variables, `env` and headers masked. */
export const describeConfig = (config: GatewayConfig): object => {
  const { upstreams, disabled, variables, notices, auth, ...gateway } = config;
  return {
    mcpServers: Object.fromEntries(
      upstreams.map((upstream) => [upstream.name, describeUpstream(upstream)]),
    ),
    disabled,
    gateway: { ...gateway, ...(auth && { auth: describeAuth(auth) }) },
    variables,
    notices,
  };
};

const policyLines = (policy: PolicySettings, indent: string): string[] =>
  Object.entries(policy).map(([name, value]) => {
    const shown = typeof value === 'object' ? JSON.stringify(value) : String(value);
    return `${indent}${name}: ${shown.replaceAll(',"', ', "').replaceAll('":', '": ')}`;
  });

const reachedBy = ({ address, secrets }: UpstreamConfig): string => {
  const shown = maskedAddress(address, secrets);
  if (shown.kind !== 'stdio') {
    const names = Object.keys(shown.headers);
    return `called at ${shown.url}${names.length > 0 ? `, with the headers ${names.join(', ')}` : ''}`;
  }
  const names = Object.keys(shown.env);
  const line = masked([shown.command, ...shown.args].join(' '), secrets);
  return `started by ${line}${names.length > 0 ? `, with ${names.join(', ')} set` : ''}`;
};

/** What holds for an upstream, for people: a line for how it is reached, one for each policy. */
export const upstreamLines = (config: UpstreamConfig): string[] => {
  const { policy, tools, toolBreaker, toolGuard } = config;
  const ofTools = Object.entries(tools).flatMap(([tool, rule]) => [
    `  tool ${tool}:`,
    ...(rule.readOnly === undefined ? [] : [`    readOnly: ${rule.readOnly}`]),
    ...(rule.idempotent === undefined ? [] : [`    idempotent: ${rule.idempotent}`]),
    ...policyLines(rule.policy ? spelledOut(rule.policy) : {}, '    '),
  ]);
  const perTool = toolBreaker ? { toolBreakers: resolve(breakerRules, toolBreaker, '') } : {};
  return [
    `  ${reachedBy(config)}`,
    ...policyLines(spelledOut(policy), '  '),
    ...policyLines(perTool as PolicySettings, '  '),
    ...(toolGuard === false ? [] : [`  toolGuard: ${toolGuard}`]),
    ...ofTools,
  ];
};
