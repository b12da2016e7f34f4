import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { DefaultLogger, Runtime, Worker, type WorkflowBundle } from '@temporalio/worker'
import { beforeAll, expect, test } from 'vitest'
import { bundleForTests } from '../integration/workflows/world.ts'

/**
 * Histories of every released version, replayed on the present workflows (needs no server). One that fails means that runs which are
 * open during an update would stand still: guard the change with `patched`.
 */
const folder = join(import.meta.dirname, 'histories')
const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.json')).sort()

interface Recorded {
  events: { eventType: string; activityTaskScheduledEventAttributes?: { activityType: { name: string } } }[]
}

const load = async (name: string) => JSON.parse(await readFile(join(folder, name), 'utf8')) as Recorded

let workflowBundle: WorkflowBundle & { code: string }
beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR') })
  workflowBundle = await bundleForTests()
})

const idOf = (name: string) => `${name.startsWith('ensemble') ? 'ensemble' : 'agent'}/${name}`

test('both workflows have histories', () => {
  const names = files.map((file) => basename(file))
  expect(names.filter((name) => name.startsWith('agent-')).length).toBeGreaterThanOrEqual(10)
  expect(names.filter((name) => name.startsWith('ensemble-')).length).toBeGreaterThanOrEqual(5)
})

test.for(files)('%s replays', async (file) => {
  const history = await load(file)
  expect(history.events.length).toBeGreaterThan(10)
  await expect(
    Worker.runReplayHistory({ workflowBundle }, history, idOf(basename(file))),
  ).resolves.toBeUndefined()
})

test('a history that the workflow would not make any more is noticed', async () => {
  const history = await load('v0.1/agent-child-with-check.json')
  const event = history.events.find(
    ({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled?.activityType.name === 'checkpointTurn',
  )
  event!.activityTaskScheduledEventAttributes!.activityType.name = 'somethingElse'
  await expect(Worker.runReplayHistory({ workflowBundle }, history, 'agent/x')).rejects.toMatchObject({
    name: 'DeterminismViolationError',
  })
})
