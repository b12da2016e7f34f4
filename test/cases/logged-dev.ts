import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createTuttiClient, type TuttiClient } from '@tutti/client'
import type { ReadyLine, TuttiStack } from '@tutti/testkit'

export interface LoggedDev {
  readonly client: TuttiClient
  readonly key: string
  readonly temporalAddress: string
  /** Ends it in order; everything that it has written to its standard error: the server's log. */
  stop(): Promise<string>
}

/** `tutti dev` whose log can be read, unlike that of a stack's own. */
export async function startLoggedDev(
  stack: TuttiStack,
  env: Readonly<Record<string, string>>,
): Promise<LoggedDev> {
  const dev = stack.cli(['dev', '-o', 'json'], { env: { LOG_LEVEL: 'trace', ...env } })
  const ended = dev.done.then(({ code, stderr }) => {
    throw new Error(`tutti dev ended with ${code}: ${stderr}`)
  })
  const first = createInterface({ input: dev.process.stdout! })
  const ready = JSON.parse(
    await Promise.race([new Promise<string>((resolve) => first.once('line', resolve)), ended]),
  ) as ReadyLine
  ended.catch(() => {})
  const key = readFileSync(join(stack.dataDir, 'local-key'), 'utf8').trim()
  const client = createTuttiClient({ address: ready.address, key })
  return {
    client,
    key,
    temporalAddress: ready.temporal_address,
    async stop() {
      dev.process.kill('SIGTERM')
      return (await dev.done).stderr
    },
  }
}
