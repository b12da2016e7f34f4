import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTuttiClient, type TuttiClient } from '@tutti/client'
import type { TuttiStack } from '@tutti/testkit'

/** A client of a running stack, with its local key. */
export function connect(stack: TuttiStack): TuttiClient {
  const key = readFileSync(join(stack.dataDir, 'local-key'), 'utf8').trim()
  return createTuttiClient({ address: stack.ready().address, key })
}
