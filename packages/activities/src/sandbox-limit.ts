import type { SettingName } from '@tutti/core'
import type { LimitName } from '@tutti/sandbox'

const words: Record<LimitName, string> = {
  memory: 'memory',
  pids: 'processes',
  disk: 'disk space',
  files: 'files',
}

export function limitDetail(limit: LimitName): string {
  const setting: SettingName = `sandbox.${limit}`
  return `The sandbox reached its limit of ${words[limit]}. Raise it with the setting ${setting}, or give the agent less to do at once.`
}
