import { TuttiError, type SettingName } from '@tutti/core'
import type { LimitName, Sandbox } from '@tutti/sandbox'

const words: Record<LimitName, string> = {
  memory: 'memory',
  pids: 'processes',
  disk: 'disk space',
  files: 'files',
}

/**
 * The limit that something has failed by: one that was seen at the sandbox, or that the error tells of. By the time that one looks at a
 * disk, what did not fit may be gone again.
 */
export function limitBehind(sandbox: Pick<Sandbox, 'limitHit'>, thrown?: unknown): LimitName | undefined {
  const seen = sandbox.limitHit()
  if (seen || !(thrown instanceof TuttiError) || thrown.detail['reason'] !== 'resource_limit') return seen
  return limitNames.find((name) => name === thrown.detail['limit'])
}

const limitNames = Object.keys(words) as LimitName[]

export function limitDetail(limit: LimitName): string {
  const setting: SettingName = `sandbox.${limit}`
  return `The sandbox reached its limit of ${words[limit]}. Raise it with the setting ${setting}, or give the agent less to do at once.`
}
