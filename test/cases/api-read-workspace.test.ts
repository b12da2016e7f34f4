import { execFileSync } from 'node:child_process'
import { request as httpRequest } from 'node:http'
import type { AgentId } from '@tutti/core'
import { AgentService, RepositoryService } from '@tutti/proto'
import { encodeOffset, encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { createTestRepository } from '@tutti/testkit'
import { startTestApi } from '@tutti/testkit/test-api'
import { expect, onTestFinished, test } from 'vitest'

const never = new AbortController().signal
const pipes = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap').length

/** An agent of a repository with the file `old`, and its log as a sandbox and a user write it. */
async function begin() {
  const repository = createTestRepository({ old: 'old' })
  const api = await startTestApi()
  onTestFinished(async () => {
    await api.close()
    repository.remove()
  })
  const { repository: added } = await api.client(RepositoryService).addRepository({ path: repository.path })
  const { agent } = await api.client(AgentService).createAgent({
    prompt: 'x',
    repository: { location: { case: 'registered', value: added!.name } },
  })
  const bcId = agent!.bcId as AgentId
  const mirror = await api.mirrors.open(repository.path, never)
  const baseCommit = await mirror.resolve('', never)
  await api.store.catalog.agents.project(bcId, { logSequence: 1000, baseCommit }, never)
  const hash = await api.blobs.put(Buffer.from('new'), never)
  let sequence = 0
  /** The position after it. */
  const write = async (...events: RunEvent[]): Promise<number> => {
    sequence += 1
    const producer = { id: 'sandbox', epoch: 1, sequence }
    await api.store.eventLog.append(bcId, producer, events.map(encodeRunEvent), never)
    return (await api.store.eventLog.head(bcId, never)).last
  }
  const changed = (path: string, action: 'created' | 'deleted') => ({
    ...({ path, action } as const),
    ...(action === 'created' && ({ fileType: 'file', mode: '100644', size: 3, hash } as const)),
  })
  const change = (path: string, action: 'created' | 'deleted' = 'created'): RunEvent => ({
    ...({ type: 'file_change', incarnation: 1 } as const),
    ...changed(path, action),
  })
  const read = async () => {
    const paths: string[] = []
    let commit = ''
    for await (const { part } of api.client(AgentService).readWorkspace({ bcId })) {
      if (part.case === 'entry') paths.push(Buffer.from(part.value.path).toString())
      if (part.case === 'summary') commit = part.value.commit
    }
    return { paths: paths.toSorted(), commit }
  }
  return { bcId, baseCommit, write, changed, change, read }
}

test('a checkpoint that is lost is passed over: what it had comes from the changes', async () => {
  const { baseCommit, write, change, read } = await begin()
  const lost = { commit: 'c'.repeat(40), tree: 't', filesChanged: 1, manifestDigest: '' }
  await write(change('new'), { type: 'checkpoint', incarnation: 1, turnId: 't', ...lost })
  expect(await read()).toEqual({ paths: ['new', 'old'], commit: baseCommit })
})

test('while going back is cut off, the workspace is the earlier one, not half of each', async () => {
  const { bcId, write, change, read } = await begin()
  const at = await write(change('first'), change('second'))
  await write(change('first', 'deleted'), change('second', 'deleted'), change('later'))
  await write(
    { type: 'workspace_restored', incarnation: 2, requestId: 'r', atOffset: encodeOffset(bcId, at) },
    change('first'),
  )
  expect((await read()).paths).toEqual(['first', 'old', 'second'])
})

test('of a file and a folder of one name that no sandbox has got yet, the later one is there', async () => {
  const { write, changed, read } = await begin()
  const synced = ['g/in', 'g', 'h', 'h/in', 'old/in'].map((path, at): RunEvent => ({
    type: 'file_sync',
    commandId: `c${at}`,
    ...changed(path, 'created'),
  }))
  await write(...synced)
  expect((await read()).paths).toEqual(['g', 'h/in', 'old/in'])
})

test('a client that stops reading a large workspace, and is then gone, keeps nothing busy', async () => {
  const large = Array.from({ length: 100 }, (_, at) => [`f${at}`, `${at % 10}`.repeat(200_000)])
  const repository = createTestRepository(Object.fromEntries(large))
  const api = await startTestApi()
  onTestFinished(async () => {
    await api.close()
    repository.remove()
  })
  const { repository: added } = await api.client(RepositoryService).addRepository({ path: repository.path })
  const { agent } = await api.client(AgentService).createAgent({
    prompt: 'x',
    repository: { location: { case: 'registered', value: added!.name } },
  })
  const bcId = agent!.bcId as AgentId
  const baseCommit = execFileSync('git', ['rev-parse', 'HEAD'], {
    cwd: repository.path,
    encoding: 'utf8',
  }).trim()
  await api.mirrors.open(repository.path, never)
  await api.store.catalog.agents.project(bcId, { logSequence: 1000, baseCommit }, never)
  const before = pipes()

  const body = Buffer.from(JSON.stringify({ bc_id: bcId }))
  const request = httpRequest(`${api.url}/tutti.v1.AgentService/ReadWorkspace`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api.key}`, 'content-type': 'application/connect+json' },
  })
  request.end(Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]))
  await new Promise<void>((resolve, reject) => {
    request.on('error', reject)
    // Read once and no more: what the server sends fills every buffer on the way.
    request.on('response', (response) => response.once('readable', resolve))
  })
  await expect.poll(pipes).toBeGreaterThan(before)
  request.on('error', () => {})
  request.destroy()
  await expect.poll(pipes, { timeout: 10_000 }).toBe(before)
})
