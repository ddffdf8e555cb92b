/**
 * @module
 * A policy with everything that holds in it, for people to read: what was not set has defaults,
 * and some of them follow from what was.
 */
import { budgetRules, type PolicySettings, policyRules, usualProbeLease } from './policy.ts';
import type { RetryBudgetSettings } from './retry-budget.ts';
import { resolve } from './settings.ts';

const budgetOf = (budget: RetryBudgetSettings | false = {}): RetryBudgetSettings | false =>
  budget === false ? false : resolve(budgetRules, budget, 'retry.budget');

/**
 * A policy with the defaults of every group that is set, those that follow from others included.
 *
 * @throws SettingsError for settings that are wrong
 */
export const spelledOut = (policy: PolicySettings): PolicySettings => {
  const { rateLimit, breaker, retry } = policy;
  const derived: PolicySettings = {
    ...policy,
    ...(rateLimit && { rateLimit: { burst: rateLimit.limit, ...rateLimit } }),
    ...(retry && { retry: { ...retry, budget: budgetOf(retry.budget) } }),
  };
  const probeLease = usualProbeLease(policy);
  const groups: Record<string, unknown> = { ...derived };
  if (breaker && probeLease !== undefined) groups.breaker = { probeLease, ...breaker };
  for (const [name, rule] of Object.entries(policyRules)) {
    const group = groups[name];
    if (rule.kind !== 'group' || typeof group !== 'object' || group === null) continue;
    groups[name] = resolve(rule.rules, group, name);
  }
  return groups;
};
