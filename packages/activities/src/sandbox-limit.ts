import type { Sandbox } from '@tutti/sandbox'

type Limit = NonNullable<ReturnType<Sandbox['limitHit']>>

const words: Record<Limit, string> = {
  memory: 'memory',
  pids: 'processes',
  disk: 'disk space',
  files: 'files',
  time: 'time',
}

export const limitDetail = (limit: Limit): string =>
  `The sandbox reached its limit of ${words[limit]}. Raise it with the setting sandbox.${limit}, or give the agent less to do at once.`
