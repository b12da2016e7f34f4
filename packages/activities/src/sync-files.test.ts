import { blobIdOf } from '@tutti/blob-store'
import { decodeRunEvent, encodeRunEvent, type RunEvent } from '@tutti/protocol'
import type { CapturedChange, FileState } from '@tutti/workspace'
import { fileChange, fileSync, neededBlobs, recoverWorkspace } from '@tutti/workspace/log'
import { afterEach, describe, expect, test } from 'vitest'
import { captureNow, createTestHost, runInside, type TestHost } from './test-host.ts'

const never = new AbortController().signal

describe('what the user changes', { timeout: 60_000 }, () => {
  let host: TestHost
  let commands = 0
  afterEach(() => host?.remove())

  const file = (path: string, text: string, mode: FileState['mode'] = '100644'): CapturedChange => ({
    action: 'modified',
    state: {
      path: Buffer.from(path),
      fileType: mode === '120000' ? 'symlink' : 'file',
      mode,
      size: Buffer.byteLength(text),
      hash: blobIdOf(text),
    },
  })
  const gone = (path: string): CapturedChange => ({ action: 'deleted', path: Buffer.from(path) })

  /** As the API does it: contents into the store, then all of it into the log at once. */
  async function change(changes: readonly CapturedChange[], contents: readonly string[]): Promise<string[]> {
    for (const text of contents) await host.deps.blobs.put(Buffer.from(text), never)
    commands += 1
    const ids = changes.map((_, at) => `c${commands}/${at}`)
    const records = changes.map((one, at) => encodeRunEvent(fileSync(one, ids[at]!)))
    const producer = { id: `client/c${commands}`, epoch: 0, sequence: 1 }
    await host.deps.eventLog.append(host.bcId, producer, records, never)
    return ids
  }

  /** Resolves when the sandbox has what these commands brought. */
  async function acked(ids: readonly string[]): Promise<void> {
    const left = new Set(ids)
    for (let from = 0; left.size > 0;) {
      const page = await host.deps.eventLog.read(host.bcId, from, { types: ['ack'], waitMs: 1000 }, never)
      for (const record of page.records)
        left.delete((decodeRunEvent(record) as Extract<RunEvent, { type: 'ack' }>).commandId)
      from = page.next
    }
  }

  const pendingNow = async () =>
    (await recoverWorkspace(host.deps.eventLog, host.bcId, never)).pending.map(({ commandId }) => commandId)

  async function saidBySandbox(event: RunEvent): Promise<void> {
    const { eventLog } = host.deps
    const sequence = await eventLog.expected(host.bcId, 'sandbox', 1, never)
    await eventLog.append(host.bcId, { id: 'sandbox', epoch: 1, sequence }, [encodeRunEvent(event)], never)
  }

  test('a file and a folder of one name, with no sandbox between them: the later one stands, in the log and in the next checkpoint', async () => {
    host = await createTestHost({ files: { kept: 'k', old: 'o' } })
    await host.lose(await host.provision(1))
    await change([file('g/in', 'early'), file('old/in', 'late')], ['early', 'late'])
    await change([file('h', 'early'), file('g', 'late')], ['early', 'late'])
    await change([file('h/in', 'late')], ['late'])
    const look = 'cat g h/in old/in; ls -A | tr "\\n" " "'
    const session = await host.provision(2)
    const expected = 'latelatelate.git g h kept old '
    expect((await runInside(session, look)).trimEnd()).toBe(expected.trimEnd())
    await captureNow(session)
    expect(await pendingNow()).toEqual([])
    await host.lose(session)
    const next = await host.provision(3)
    expect((await runInside(next, look)).trimEnd()).toBe(expected.trimEnd())
    await host.checkpoint(next)
    await host.lose(next)
    expect((await runInside(await host.provision(4), look)).trimEnd()).toBe(expected.trimEnd())
    expect((await host.events('recovery')).at(-1)).toMatchObject({ proven: true, missing: [] })
  })

  test('is in a living sandbox without an echo, in the next checkpoint and in the next sandbox', async () => {
    host = await createTestHost({ files: { kept: 'k', old: 'o', notes: 'n' } })
    const session = await host.provision(1)
    const ids = await change(
      [file('notes', 'mine'), file('new/run', 'go', '100755'), file('link', 'notes', '120000'), gone('old')],
      ['mine', 'go', 'notes'],
    )
    await acked(ids)
    const look = 'cat notes; cat new/run; test -x new/run; readlink link; test ! -e old'
    expect(await runInside(session, look)).toBe('minegonotes')
    await captureNow(session)
    expect(await host.events('file_change')).toEqual([])
    const { filesChanged } = await host.checkpoint(session)
    expect(filesChanged).toBe(4)
    await host.lose(session)
    expect(await runInside(await host.provision(2), look)).toBe('minegonotes')
    expect((await host.events('recovery')).at(-1)).toMatchObject({ proven: true, missing: [] })
  })

  test('wins over what the agent did without it, whose version stays in log and store, and is told to the agent', async () => {
    host = await createTestHost({ files: { notes: 'n' } })
    const session = await host.provision(1)
    await runInside(session, 'printf agent > notes; printf more > other')
    await acked(await change([file('notes', 'mine')], ['mine']))
    expect(await runInside(session, 'cat notes other')).toBe('mineminemore'.slice(4))
    const [agents] = (await host.events('file_change')).filter(({ path }) => path === 'notes')
    expect(Buffer.from(await host.deps.blobs.get(agents!.hash!, never)).toString()).toBe('agent')
    expect(session.server.news()).toContain('"notes"')
    expect(session.server.news()).toBe('')
    // What it writes afterwards, it writes knowing.
    await runInside(session, 'printf again > notes')
    await captureNow(session)
    await host.lose(session)
    expect(await runInside(await host.provision(2), 'cat notes other')).toBe('againmore')
  })

  test('waits for a sandbox while there is none, and wins over what the last one had said too late', async () => {
    host = await createTestHost({ files: { notes: 'n', old: 'o' } })
    const first = await host.provision(1)
    await runInside(first, 'printf first > notes')
    await captureNow(first)
    // From here on this host does not follow the log, and the sandbox does not hear of it.
    first.controller.abort()
    const ids = await change([file('notes', 'mine'), gone('old')], ['mine'])
    await host.deps.blobs.put(Buffer.from('late'), never)
    await saidBySandbox(fileChange(file('notes', 'late'), 1))
    const recovered = await recoverWorkspace(host.deps.eventLog, host.bcId, never)
    expect(recovered.pending.map(({ commandId }) => commandId)).toEqual(ids)
    // Whatever is swept, neither version is.
    const needed = await neededBlobs(host.deps.eventLog, host.bcId, Date.now() + 1000, never)
    expect([needed.has(blobIdOf('mine')), needed.has(blobIdOf('late'))]).toEqual([true, true])
    await host.lose(first)
    const second = await host.provision(2)
    expect(await runInside(second, 'cat notes; test ! -e old')).toBe('mine')
    expect((await host.events('ack')).map(({ commandId }) => commandId)).toEqual(ids)
    const after = await neededBlobs(host.deps.eventLog, host.bcId, Date.now() + 1000, never)
    expect([after.has(blobIdOf('mine')), after.has(blobIdOf('late'))]).toEqual([true, false])
    expect(second.server.news()).toContain('"notes", "old"')
    await host.lose(second)
    expect(await runInside(await host.provision(3), 'cat notes; test ! -e old')).toBe('mine')
    expect((await host.events('recovery')).at(-1)).toMatchObject({ proven: true })
  })

  test('may be a folder where a file was, and the other way round; what that takes away is told', async () => {
    host = await createTestHost({ files: { flat: 'f' } })
    const session = await host.provision(1)
    await runInside(session, 'mkdir deep empty; printf 1 > deep/one; printf 2 > deep/two')
    await captureNow(session)
    const before = (await host.events('file_change')).length
    const ids = await change(
      [gone('flat'), file('flat/inner', 'i'), gone('deep/one'), file('deep', 'd'), file('empty/now', 'e')],
      ['i', 'd', 'e'],
    )
    await acked(ids)
    expect(await runInside(session, 'cat flat/inner deep empty/now')).toBe('ide')
    const told = (await host.events('file_change')).slice(before)
    expect(told.map(({ path, action }) => `${action} ${path}`)).toEqual(['deleted deep/two', 'deleted empty'])
    await host.lose(session)
    expect(await runInside(await host.provision(2), 'cat flat/inner deep empty/now')).toBe('ide')
    expect((await host.events('recovery')).at(-1)).toMatchObject({ proven: true })
  })

  test('a checkpoint that was made without it does not take it away', async () => {
    host = await createTestHost({ files: { notes: 'n' } })
    const session = await host.provision(1)
    session.controller.abort()
    await change([file('notes', 'mine')], ['mine'])
    const { last } = await host.deps.eventLog.head(host.bcId, never)
    const checkpoint = { type: 'checkpoint', incarnation: 1, turnId: 't', tree: '', filesChanged: 0 } as const
    await saidBySandbox({ ...checkpoint, commit: session.baseCommit, manifestDigest: '' })
    const { pending, commit } = await recoverWorkspace(host.deps.eventLog, host.bcId, never)
    expect([pending.length, commit]).toEqual([1, session.baseCommit])
    expect((await recoverWorkspace(host.deps.eventLog, host.bcId, never, last - 1)).pending).toEqual([])
  })

  test('that the sandbox cannot have is told once, holds up nothing else, and comes when it can', async () => {
    host = await createTestHost({
      files: { notes: 'n' },
      agentSpec: 'command:true',
      limits: { diskBytes: 24 << 20, fileBytes: 4 << 20, files: 2000 },
    })
    const session = await host.provision(1)
    // Room for two such files, and not for three.
    await runInside(
      session,
      'n=0; while head -c 4000000 /dev/zero > full$n 2> /dev/null; do n=$((n+1)); done; rm full$n full0 full1',
    )
    const large = ['a', 'b', 'c'].map((letter) => letter.repeat(4_000_000))
    const [huge, mine] = ['h'.repeat(5_000_000), 'mine']
    // The API takes each part of it, and all of it.
    const long = Array.from({ length: 16 }, (_, at) => String(at).padEnd(255, 'x')).join('/')
    const first = await change(
      [
        file('a-huge', huge),
        file(long, mine),
        ...large.map((content, at) => file(`b${at}`, content)),
        file('notes', mine),
      ],
      [huge, mine, ...large],
    )
    await acked([first[5]!])
    const failures = async () =>
      (await host.events('file_sync_failed')).map(({ commandId, path, code }) => [commandId, path, code])
    expect(await failures()).toEqual([
      [first[0], 'a-huge', 'EFBIG'],
      [first[1], long, 'ENAMETOOLONG'],
      [first[4], 'b2', 'ENOSPC'],
    ])
    for (const { detail } of await host.events('file_sync_failed')) expect(detail).toMatch(/: .+\.$/)
    expect(
      await runInside(session, 'cat notes; find . -path ./.git -prune -o ! -name "full*" -print | sort'),
    ).toBe('mine.\n./b0\n./b1\n./notes')
    expect(await pendingNow()).toEqual([first[0], first[1], first[4]])

    // There is room now: it comes before the next turn. And a shorter name: it comes with the next change.
    await runInside(session, 'rm full*')
    await host.runTurn(session, false)
    await acked([first[4]!])
    const second = await change([gone(long), file('short', mine)], [])
    await acked([...second, first[1]!])
    expect(await runInside(session, 'wc -c < b2; cat short')).toBe('4000000\nmine')
    expect(await failures()).toHaveLength(3)
    expect(await pendingNow()).toEqual([first[0]])

    // The next sandbox is not held up either.
    await host.lose(session)
    const next = await host.provision(2)
    expect(await runInside(next, 'cat notes short; test ! -e a-huge')).toBe('minemine')
    expect((await host.events('file_sync_failed')).slice(3)).toMatchObject([
      { incarnation: 2, commandId: first[0], code: 'EFBIG' },
    ])
    expect((await host.events('recovery')).at(-1)).toMatchObject({ proven: true })
    await acked(await change([gone('a-huge')], []))
    expect(await pendingNow()).toEqual([])
  })

  test('whose content the store has lost is told, and the rest comes; it comes when it is back', async () => {
    host = await createTestHost({ files: { notes: 'n' } })
    const session = await host.provision(1)
    session.controller.abort()
    const ids = await change([file('a', 'aaa'), file('b', 'bbb'), file('c', 'ccc')], ['aaa', 'bbb', 'ccc'])
    host.removeBlob(blobIdOf('bbb'))
    await host.lose(session)
    const next = await host.provision(2)
    expect(await runInside(next, 'cat a c; test ! -e b')).toBe('aaaccc')
    expect(await host.events('file_sync_failed')).toMatchObject([
      { incarnation: 2, commandId: ids[1], path: 'b', code: 'lost' },
    ])
    await host.deps.blobs.put(Buffer.from('bbb'), never)
    await acked(await change([file('d', 'ddd')], ['ddd']))
    await acked(ids)
    expect(await runInside(next, 'cat a b c d')).toBe('aaabbbcccddd')
  })

  test('is in a checkpoint also when no turn runs, and in a folder that the agent has shut', async () => {
    host = await createTestHost({ files: { notes: 'n' } })
    const session = await host.provision(1)
    await runInside(session, 'mkdir shut; echo 1 > shut/a; chmod 555 shut')
    await captureNow(session)
    await acked(await change([file('shut/a', 'mine'), file('shut/b', 'new')], ['mine', 'new']))
    expect(await runInside(session, 'cat shut/a shut/b')).toBe('minenew')
    await expect.poll(() => host.events('checkpoint'), { timeout: 20_000 }).toHaveLength(1)
    const [checkpoint] = await host.events('checkpoint')
    const paths: string[] = []
    for await (const { path } of session.mirror.files(checkpoint!.commit, never))
      paths.push(Buffer.from(path).toString())
    expect(paths.toSorted()).toEqual(['notes', 'shut/a', 'shut/b'])
  })
})
