import type { TuttiClient } from '@tutti/client'
import { limits } from '@tutti/core'
import {
  createTestRepository,
  createTuttiStack,
  type RoleProcess,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { killSandbox } from './sandboxes.ts'
import { script } from './script.ts'
import { watchMemory } from './watch-memory.ts'

const temporalPath = inject('temporalServer')
const MiB = 1 << 20

describe.skipIf(!temporalPath)('sizes of files after the loss of a sandbox', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let api: RoleProcess
  let worker: RoleProcess
  let repository: TestRepository

  beforeAll(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      // A capture in the middle of writing would store another 300 MiB that nobody wants.
      env: { TUTTI_CAPTURE_INTERVAL: '10m' },
    })
    api = await stack.serve('api')
    worker = await stack.serve('worker')
    client = connect(stack)
    repository = createTestRepository({ x: 'x' })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  test('REC-22 one large file and one above the limit', async () => {
    const agent = await startAgent(client, {
      prompt: script('run: head -c 1048576 /dev/urandom > small.bin'),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.rest()
    const memory = [api, worker].map(({ ready }) => watchMemory(ready.pid))

    await agent.followUp(
      script(
        'run: <<EOF',
        `head -c ${300 * MiB} /dev/urandom > model.bin`,
        `truncate -s ${limits.maxFileBytes + 1} dump.bin`,
        'EOF',
        // Begins anew in the next sandbox, and so says what is there.
        'run: echo $(sha256sum < model.bin) $(stat -c %s model.bin) $(ls); sleep 951',
      ),
    )
    const said = (incarnation: number) => {
      let now = 0
      return agent.waitFor((event) => {
        if (event.type === 'sandbox') now = event.incarnation
        return (
          now === incarnation &&
          event.type === 'shell_output_delta' &&
          shellOutput([event]).includes('model.bin')
        )
      })
    }
    const before = shellOutput([await said(1)])
    killSandbox(stack, 'sleep 951')
    const after = shellOutput([await said(2)])

    expect(before).toMatch(new RegExp(`^[0-9a-f]{64} - ${300 * MiB} dump.bin model.bin small.bin x\n$`))
    expect(after).toBe(before.replace('dump.bin ', ''))
    const events = await agent.events()
    expect(events.filter((event) => event.type === 'recovery')).toMatchObject([
      { incarnation: 2, missing: [{ path: 'dump.bin', reason: 'too_large' }], proven: true },
    ])
    expect(events.filter((event) => event.type === 'file_skipped')).toEqual([
      {
        type: 'file_skipped',
        incarnation: 1,
        path: 'dump.bin',
        reason: 'too_large',
        size: limits.maxFileBytes + 1,
        offset: expect.any(String) as string,
      },
    ])
    for (const grown of memory) expect(grown()).toBeLessThan(128 * MiB)
  })
})
