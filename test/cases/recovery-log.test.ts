import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { driveAgent, startAgent, type Logged } from './agent-driver.ts'
import { connect } from './connect.ts'
import { listFolder, listNow } from './recovery-driver.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

interface Summary {
  readonly manifest_digest: string
  readonly recorded_digest: string
  readonly proven: boolean
  readonly steps: readonly { readonly name: string; readonly ms: number }[]
}

describe.skipIf(!temporalPath)('the workspace of a log position', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let folder: string

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath! })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ old: 'old\n', kept: 'kept\n', 'dir/inside': 'in\n' })
    folder = mkdtempSync(join(tmpdir(), 'tutti workspace '))
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  test('agent workspace writes the files of now and of any earlier position; recover --verify proves them', async () => {
    const agent = await startAgent(client, {
      prompt: script(
        'run: rm old; mkdir empty; ln -s ../kept dir/link; printf "a b" > "new file"; chmod +x kept',
        'run: echo later > "new file"; rm -r dir empty',
      ),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.rest()
    const events = await agent.events()
    const isCaptured = (event: { readonly type: string }) => event.type === 'workspace_captured'
    const firstEnd = events.findIndex((event) => event.type === 'tool_call_completed')
    const [first, last] = [events.slice(0, firstEnd).findLast(isCaptured), events.findLast(isCaptured)]
    const write = async (name: string, ...flags: readonly string[]) => {
      const to = join(folder, name)
      const run = await stack.run(['agent', 'workspace', agent.bcId, '--to', to, ...flags])
      expect(run).toMatchObject({ code: 0 })
      expect(run.stdout).toContain('as recorded')
      return listFolder(to)
    }
    const early = await write('early', '--at', first!.offset)
    expect(Object.keys(early).sort()).toEqual(['dir/inside', 'dir/link', 'empty/', 'kept', 'new file'])
    expect(early['dir/link']).toBe('link ../kept')
    expect(early['kept']).toMatch(/^755 /)
    expect(await write('now')).toEqual(await listNow(agent))
    for (const offset of [first!.offset, last!.offset]) {
      const summary = await stack.json<Summary>(['agent', 'recover', agent.bcId, '--verify', '--at', offset])
      expect(summary).toMatchObject({ proven: true, recorded_digest: summary.manifest_digest })
      expect(summary.steps.map(({ name }) => name)).toHaveLength(4)
    }
    const again = await stack.run(['agent', 'workspace', agent.bcId, '--to', join(folder, 'now')])
    expect(again.stderr).toContain('something is in it')
    const elsewhere = await stack.run([
      'agent',
      'workspace',
      agent.bcId,
      '--to',
      join(folder, 'x'),
      '--at',
      'no',
    ])
    expect(elsewhere.code).not.toBe(0)
    expect(readdirSync(folder).sort()).toEqual(['early', 'now'])
  })

  test('REC-16 a record is missing in the middle of the log', async () => {
    const lines = Array.from({ length: 6 }, (_, at) => `run: echo ${at} > f${at}`)
    const started = await startAgent(client, {
      prompt: script(...lines),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await started.rest()
    const events = await started.events()
    const before = events.filter((event) => event.type === 'workspace_captured')[3]!
    const missing = events.indexOf(before) + 2
    await stack.stop()
    const database = new DatabaseSync(join(stack.dataDir, 'tutti.db'))
    const gone = database
      .prepare('DELETE FROM log_records WHERE log_id = ? AND sequence = ?')
      .run(started.bcId, missing)
    database.close()
    expect(Number(gone.changes)).toBe(1)
    await stack.start()
    client = connect(stack)
    const agent = driveAgent(client, started.bcId)

    const read: Logged[] = []
    const reading = (async () => {
      for await (const { eventJson, offsetKey } of client.agents.streamAgentEvents({ bcId: agent.bcId }))
        if (eventJson) read.push({ ...(JSON.parse(eventJson) as Logged), offset: offsetKey })
    })()
    await expect(reading).rejects.toMatchObject({
      code: 'data_loss',
      message: expect.stringContaining(`Record ${missing} of log`) as string,
    })
    expect(read).toEqual(events.slice(0, missing - 1))

    const verify = (...flags: readonly string[]) =>
      stack.run(['agent', 'recover', agent.bcId, '--verify', '-o', 'json', ...flags])
    const refused = await verify()
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`Record ${missing} of log`) as string,
    })
    await agent.followUp(script('say: again'))
    await expect.poll(() => agent.state(), { timeout: 30_000 }).toBe('ERROR')
    expect((await agent.get()).state?.reason).toBe('data_loss')

    const atBefore = await verify('--at', before.offset)
    expect(atBefore).toMatchObject({ code: 0 })
    const summary = JSON.parse(atBefore.stdout) as Summary
    expect(summary.manifest_digest).toBe(before.manifestDigest)
    expect(summary.proven).toBe(true)
    const to = join(folder, 'before the hole')
    await stack.run(['agent', 'workspace', agent.bcId, '--at', before.offset, '--to', to])
    expect(existsSync(join(to, 'f3')) && !existsSync(join(to, 'f4'))).toBe(true)
  })
})
