import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { dirname, join } from 'node:path'
import { Code } from '@connectrpc/connect'
import { mirrorRefs, type AgentId } from '@tutti/core'
import { AgentService, RepositoryService } from '@tutti/proto'
import { encodeOffset, encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { blobIdToBytes } from '@tutti/protocol/wire'
import { createTestRepository } from '@tutti/testkit'
import { startTestApi } from '@tutti/testkit/test-api'
import { describe, expect, onTestFinished, test } from 'vitest'

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
    const contents: Record<string, string> = {}
    let commit = ''
    for await (const { part } of api.client(AgentService).readWorkspace({ bcId })) {
      if (part.case === 'entry') paths.push(Buffer.from(part.value.path).toString())
      if (part.case === 'content')
        contents[paths.at(-1)!] = (contents[paths.at(-1)!] ?? '') + Buffer.from(part.value).toString('latin1')
      if (part.case === 'summary') commit = part.value.commit
    }
    return { paths: paths.toSorted(), contents, commit }
  }
  const missing = async () => {
    const told: string[] = []
    for await (const { part } of api.client(AgentService).readWorkspace({ bcId }))
      if (part.case === 'missing')
        told.push(`${Buffer.from(part.value.path).toString()} ${part.value.reason}`)
    return told
  }
  const verify = async () => {
    for await (const { part } of api.client(AgentService).readWorkspace({ bcId, verifyOnly: true }))
      if (part.case === 'summary') return part.value.manifestDigest
    return ''
  }
  /** As a session makes it, with its packs in the archive. */
  const checkpoint = async (files: Readonly<Record<string, string>>) => {
    const changes = Object.entries(files).map(([path, text]) => {
      const bytes = Buffer.from(text, 'latin1')
      const content = async function* () {
        yield bytes
      }
      return { path: Buffer.from(path), mode: '100644' as const, size: bytes.length, content }
    })
    const ref = mirrorRefs.checkpoint(bcId)
    const made = { parent: baseCommit, changes, ref, message: 'm', atMs: 0 }
    const { commit, tree } = await mirror.commit(made, never)
    await mirror.keepBase(baseCommit, never)
    await mirror.keep({ commit, onto: baseCommit, base: baseCommit }, never)
    const event = { commit, tree, filesChanged: changes.length, manifestDigest: '' }
    await write({ type: 'checkpoint', incarnation: 1, turnId: 't', ...event })
    const objectOf = (revision: string, store = mirror.path) => {
      const id = execFileSync('git', ['rev-parse', revision], { cwd: mirror.path, encoding: 'utf8' }).trim()
      return join(store, 'objects', id.slice(0, 2), id.slice(2))
    }
    return { commit, objectOf, archive: join(api.dataDir, 'archive', 'commits', commit.slice(0, 2)) }
  }
  return { api, hash, bcId, baseCommit, write, changed, change, read, missing, verify, checkpoint, mirror }
}

test('a checkpoint that is lost is passed over: what it had comes from the changes', async () => {
  const { baseCommit, write, change, read } = await begin()
  const lost = { commit: 'c'.repeat(40), tree: 't', filesChanged: 1, manifestDigest: '' }
  await write(change('new'), { type: 'checkpoint', incarnation: 1, turnId: 't', ...lost })
  expect(await read()).toMatchObject({ paths: ['new', 'old'], commit: baseCommit })
})

test('all paths whose content is in no store are told of, whatever their number', async () => {
  const { write, missing } = await begin()
  const names = Array.from({ length: 150 }, (_, at) => `fifo ${at}`)
  await write(
    ...names.map((path) => ({ type: 'file_skipped', incarnation: 1, path, reason: 'special' }) as const),
  )
  expect(await missing()).toEqual(names.map((name) => `${name} special`))
})

test.each(['missing', 'damaged'] as const)(
  'a content that is %s comes as its hash where the request allows it, after it the others',
  async (how) => {
    const { api, hash, bcId, write, change, read, verify } = await begin()
    const other = await api.blobs.put(Buffer.from('other'), never)
    await write(change('lost'), { ...change('there'), hash: other, size: 5 } as RunEvent)
    const digest = await verify()
    damage[how](join(api.dataDir, 'blobs', hash.slice(7, 9), hash))
    const parts: unknown[] = []
    for await (const { part } of api.client(AgentService).readWorkspace({ bcId, allowLost: true }))
      parts.push(part.case === 'content' ? Buffer.from(part.value).toString() : part.value)
    const path = (name: string) => Uint8Array.from(Buffer.from(name))
    expect(parts).toMatchObject([
      { path: path('old') },
      'old',
      { path: path('lost'), size: 3n, lostHash: blobIdToBytes(hash) },
      { path: path('there'), lostHash: new Uint8Array() },
      'other',
      { manifestDigest: digest },
    ])
    await expect(read()).rejects.toMatchObject({ code: Code.DataLoss })
  },
)

const damage = {
  missing: (path: string) => rmSync(path),
  damaged(path: string) {
    const bytes = readFileSync(path)
    bytes[bytes.length >> 1]! ^= 0xff
    rmSync(path)
    writeFileSync(path, bytes)
  },
}

describe('what the mirror has missing or damaged of a checkpoint comes from the archive', () => {
  const large = randomBytes(3 << 20).toString('latin1')
  const files = { a: 'a', 'd/e/f': 'f', 'd/large': large, z: 'z' }
  const ways = (['missing', 'damaged'] as const).flatMap((how) =>
    ['^{commit}', '^{tree}', ':d', ':d/e', ':a', ':d/large'].map((what) => [how, what] as const),
  )
  test.for(ways)('%s: %s', async ([how, what]) => {
    const { checkpoint, read, verify } = await begin()
    const { commit, objectOf } = await checkpoint(files)
    const [readable, digest] = [await read(), await verify()]
    expect(readable).toEqual({
      commit,
      paths: [...Object.keys(files), 'old'].toSorted(),
      contents: { ...files, old: 'old' },
    })
    damage[how](objectOf(commit + what))
    expect(await Promise.all([read(), verify()])).toEqual([readable, digest])
  })

  test('of a large file that was begun the reading ends, and can be done again', async () => {
    const { checkpoint, read } = await begin()
    const huge = large.repeat(2)
    const { commit, objectOf } = await checkpoint({ huge })
    damage.damaged(objectOf(`${commit}:huge`))
    await expect(read()).rejects.toMatchObject({ code: Code.Aborted, rawMessage: /^The .* of huge .* again/ })
    expect((await read()).contents).toMatchObject({ huge })
  })

  test.for([':a', ':d'])('and where that has not got %s either, it is data_loss', async (what) => {
    const { checkpoint, read, verify } = await begin()
    const { commit, objectOf, archive } = await checkpoint(files)
    damage.missing(objectOf(commit + what))
    for (const pack of readdirSync(archive)) if (pack.startsWith(commit)) damage.missing(join(archive, pack))
    const told = { code: Code.DataLoss, rawMessage: expect.stringContaining('tutti agent recover') as string }
    for (const reading of [read, verify]) {
      const thrown = await reading().catch((error: unknown) => error)
      expect(thrown).toMatchObject(told)
      expect(JSON.stringify(thrown)).toContain(commit)
    }
  })

  test('what has changed since is read for a look at what a recovery needs alone', async () => {
    const { checkpoint, write, change, read, verify } = await begin()
    const { commit, objectOf, archive } = await checkpoint(files)
    damage.missing(objectOf(`${commit}:a`))
    for (const pack of readdirSync(archive)) if (pack.startsWith(commit)) damage.missing(join(archive, pack))
    await write(change('a', 'deleted'))
    expect(await read()).toMatchObject({ paths: ['d/e/f', 'd/large', 'old', 'z'], contents: { z: 'z' } })
    await expect(verify()).rejects.toMatchObject({ code: Code.DataLoss })
  })

  test('what came from the repository is not ours to bring back', async () => {
    const { checkpoint, read, mirror } = await begin()
    const { commit, objectOf } = await checkpoint(files)
    const [source, packs] = [dirname(mirror.sourceObjects), join(mirror.sourceObjects, 'pack')]
    for (const name of readdirSync(packs)) {
      const bytes = readFileSync(join(packs, name))
      rmSync(join(packs, name))
      if (name.endsWith('.pack')) execFileSync('git', ['unpack-objects', '-q'], { cwd: source, input: bytes })
    }
    damage.missing(objectOf(`${commit}:old`, source))
    await expect(read()).rejects.toMatchObject({ code: Code.DataLoss, rawMessage: /remove .*\.source\.git/ })
  })
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
