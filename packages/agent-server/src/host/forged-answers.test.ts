import { createHash } from 'node:crypto'
import { PassThrough } from 'node:stream'
import type { BlobId } from '@tutti/core'
import type { Exec } from '@tutti/sandbox'
import { hostilePaths } from '@tutti/testkit'
import { changePath, pathKey } from '@tutti/workspace'
import { afterEach, describe, expect, test } from 'vitest'
import { createLink } from '../link/link.ts'
import type { AgentServer } from '../port.ts'
import { never, recordCapture, shell } from '../test-sandbox.ts'
import { connectAgentServer } from './connect-agent-server.ts'

type Say = (header: object, bytes?: Uint8Array) => void
/** What a forger does with one call of the host. */
type Forgery = (c: number, say: Say) => void

const content = Buffer.from('forged\n')
const hash = `sha256_${createHash('sha256').update(content).digest('hex')}`
const path64 = (path: string) => Buffer.from(path, 'latin1').toString('base64')
const created = {
  action: 'created',
  path: path64('a.txt'),
  fileType: 'file',
  mode: '100644',
  size: content.length,
  hash,
}
const summary = { manifestDigest: '0'.repeat(64), entries: 1, changes: 1 }
const exit = { code: 0, timedOut: false }

const servers: AgentServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** A host whose link ends in a forger: real frames, no agent server. */
async function connectTo(forgeries: Readonly<Record<string, Forgery>>): Promise<AgentServer> {
  const stdout = new PassThrough()
  const stderr = new PassThrough()
  const { promise: ended, resolve: end } = Promise.withResolvers<{ code: number }>()
  const say: Say = (header, bytes) => void link.send(header, bytes).catch(() => {})
  const link = createLink({
    onMessage(header) {
      const { t, c, method } = header as { t: string; c: number; method: string }
      if (t !== 'call') return
      if (method === 'hello') say({ t: 'done', c, result: null })
      else forgeries[method]?.(c, say)
    },
  })
  link.attach(async (bytes) => void stdout.write(bytes))
  const stop = async () => {
    stdout.end()
    stderr.end()
    end({ code: 0 })
  }
  const exec: Exec = {
    stdout,
    stderr,
    write: async (bytes) => link.receive(bytes),
    closeStdin: stop,
    kill: stop,
    exit: ended,
  }
  const server = await connectAgentServer({
    exec,
    settings: {
      workdir: '/w',
      home: '/h',
      sourceObjects: '/m',
      stopGraceMs: 1000,
      isolated: true,
      ignored: { files: 'small', envFiles: false },
    },
  })
  servers.push(server)
  return server
}

const message =
  (head: unknown): Forgery =>
  (c, say) =>
    say({ t: 'msg', c, head })
const done =
  (result: unknown): Forgery =>
  (c, say) =>
    say({ t: 'done', c, result })
const withContent = (change: object): Forgery[] => [
  message({ change }),
  (c, say) => say({ t: 'msg', c, head: 'content' }, content),
]
const all =
  (...forgeries: Forgery[]): Forgery =>
  (c, say) => {
    for (const forge of forgeries) forge(c, say)
  }
const refused = { code: 'data_loss', message: expect.stringMatching(/^The agent server reported /) }

describe('a capture that somebody else reports', () => {
  const captureOf = async (...forgeries: Forgery[]) => {
    const server = await connectTo({ capture: all(...forgeries) })
    const recorded = recordCapture()
    const result = await server.capture(recorded.sink, never).catch((error: unknown) => error)
    return { recorded, result }
  }

  test('is taken when it could be one', async () => {
    const { recorded, result } = await captureOf(
      ...withContent(created),
      message({ skipped: { path: path64('.git~1/\xff'), reason: 'unsafe_name', size: 2 ** 63 } }),
      message({ summary }),
      done(summary),
    )
    expect(result).toEqual(summary)
    expect(recorded.changes).toMatchObject([{ action: 'created', state: { mode: '100644', hash } }])
    expect(recorded.skipped).toEqual([{ path: '.git~1/\xff', reason: 'unsafe_name' }])
  })

  const injection = `100644 inline a.txt\ndata 2\nhi\n\nreset refs/heads/evil\nfrom ${'0'.repeat(40)}\n\nM 100644`
  const modified = { ...created, action: 'modified', base: hash }
  const { mode: _mode, ...withoutMode } = created
  const { base: _base, ...withoutBase } = modified
  test.each<[string, unknown]>([
    ['a mode that is a script', { ...created, mode: injection }],
    ['a mode that is none', { ...created, mode: '160000' }],
    ['a mode with a line end', { ...created, mode: '100644\n' }],
    ['no mode', withoutMode],
    ['a file with the mode of a link', { ...created, mode: '120000' }],
    ['a link with the mode of a file', { ...created, fileType: 'symlink' }],
    ['a file type that is none', { ...created, fileType: 'gitlink' }],
    ['an action that is none', { ...created, action: 'renamed' }],
    ['an action of every object', { ...created, action: 'constructor' }],
    ['a created file that was there', { ...created, base: hash }],
    ['a modified file that was not there', withoutBase],
    ['a folder with a content', { ...created, fileType: 'dir', mode: '040000' }],
    ['a deletion with a state', { ...modified, action: 'deleted' }],
    ['a base that is no hash', { ...modified, base: 'sha256_\n' }],
    ['a hash that is none', { ...created, hash: `${hash}\n` }],
    ['a size below nothing', { ...created, size: -1 }],
    ['a size that is a text', { ...created, size: `${content.length}\n` }],
    ['a size above the largest file', { ...created, size: 2 ** 40 }],
    ['a link without a target', { ...created, fileType: 'symlink', mode: '120000', size: 0 }],
    ['a path that is no base64', { ...created, path: '\n"' }],
    ['a path that is a list', { ...created, path: [97] }],
    ['a path without end', { ...created, path: path64('a'.repeat(100_000)) }],
    ['a field too many', { ...created, extra: 1 }],
    ['a change that is none', null],
  ])('is refused for %s, before the sink sees it', async (_why, change) => {
    const { recorded, result } = await captureOf(
      ...withContent(change as object),
      message({ summary }),
      done(summary),
    )
    expect(result).toMatchObject(refused)
    expect(recorded.changes).toEqual([])
  })

  test.each(
    hostilePaths.flatMap((path) => [
      [path.slice(0, 20), withContent({ ...created, path: path64(path) }), path.slice(0, 4352)] as const,
      [
        `the end of ${path.slice(0, 20)}`,
        [message({ change: { action: 'deleted', path: path64(path) } })],
        path.slice(0, 4352),
      ] as const,
    ]),
  )(
    'SEC-01 a change of %j is refused and told of, and everything else is taken',
    async (_path, change, told) => {
      const whole = { ...summary, changes: 3 }
      const { recorded, result } = await captureOf(
        ...withContent(created),
        ...change,
        ...withContent({ ...created, path: path64('z.txt') }),
        message({ summary: whole }),
        done(whole),
      )
      expect(result).toEqual(whole)
      expect(recorded.changes.map((taken) => pathKey(changePath(taken)))).toEqual(['a.txt', 'z.txt'])
      expect(recorded.skipped).toEqual([{ path: told, reason: 'unsafe_name' }])
    },
  )

  test('SEC-02 a change below a link of the same capture is refused and told of, and the link is taken', async () => {
    const link = { ...created, path: path64('out'), fileType: 'symlink', mode: '120000' }
    const whole = { ...summary, changes: 3 }
    const { recorded, result } = await captureOf(
      ...withContent(link),
      ...withContent({ ...created, path: path64('out/tmp/pwn') }),
      ...withContent({ ...created, path: path64('z.txt') }),
      message({ summary: whole }),
      done(whole),
    )
    expect(result).toEqual(whole)
    expect(recorded.changes.map((taken) => pathKey(changePath(taken)))).toEqual(['out', 'z.txt'])
    expect(recorded.skipped).toEqual([{ path: 'out/tmp/pwn', reason: 'unsafe_name' }])
  })

  const ahead: Forgery[] = [
    message({ content: true }),
    (c, say) => say({ t: 'msg', c, head: 'content' }, content),
    message('content_end'),
  ]
  const aheadOf = (change: object) => message({ change: { ...change, ahead: true } })

  test('is taken when content comes before its change, also when no change comes for it', async () => {
    const { recorded, result } = await captureOf(
      ...ahead,
      aheadOf(created),
      ...ahead,
      message({ summary }),
      done(summary),
    )
    expect(result).toEqual(summary)
    expect(recorded.contents.get(hash as BlobId)).toEqual(content)
  })

  test.each<[string, Forgery[]]>([
    ['of another hash', [...ahead, aheadOf({ ...created, hash: `sha256_${'0'.repeat(64)}` })]],
    ['of another size', [...ahead, aheadOf({ ...created, size: 1 })]],
    ['that never came', [aheadOf(created)]],
    ['that has no end', [...ahead.slice(0, 2), aheadOf(created)]],
  ])('is refused for content %s', async (_why, forgeries) => {
    const { recorded, result } = await captureOf(...forgeries, message({ summary }), done(summary))
    expect(result).toMatchObject({ code: 'data_loss' })
    expect(recorded.changes).toEqual([])
  })

  test.each<[string, unknown]>([
    ['a reason that is none', { skipped: { path: path64('a'), reason: 'evil' } }],
    ['a size that is none', { skipped: { path: path64('a'), reason: 'limit', size: 0.5 } }],
    ['a path with a NUL', { skipped: { path: path64('a\0'), reason: 'limit' } }],
    ['an endless path', { skipped: { path: path64('a'.repeat(5000)), reason: 'limit' } }],
    ['a path that was not to be written', { unwritten: { path: path64('a'), code: 'ENOSPC' } }],
    ['a code that is none', { unwritten: { path: path64('a'), code: '\u001b[31m' } }],
    ['a digest that is none', { summary: { ...summary, changes: 0, manifestDigest: `${'0'.repeat(63)}\n` } }],
    ['a count below nothing', { summary: { ...summary, changes: 0, entries: -1 } }],
    ['changes that never came', { summary }],
    ['two things at once', { summary: { ...summary, changes: 0 }, skipped: undefined, change: null }],
    ['nothing', {}],
    ['a text', 'content'],
    ['a list', [created]],
    ['null', null],
  ])('is refused for %s', async (_why, head) => {
    const { recorded, result } = await captureOf(message(head), done({ ...summary, changes: 0 }))
    expect(result).toMatchObject(refused)
    expect(recorded).toMatchObject({ changes: [], skipped: [] })
  })

  test('is refused when a path comes twice, the summary changes, or is missing', async () => {
    const twice = await captureOf(...withContent(created), ...withContent(created))
    expect(twice.result).toMatchObject(refused)
    expect(twice.recorded.changes).toHaveLength(1)
    const other = await captureOf(
      message({ summary: { ...summary, changes: 0 } }),
      done({ ...summary, changes: 0, entries: 2 }),
    )
    expect(other.result).toMatchObject(refused)
    expect((await captureOf(done(summary))).result).toMatchObject(refused)
  })

  test('is refused when another message stands in for content', async () => {
    const { result } = await captureOf(message({ change: created }), (c, say) =>
      say({ t: 'msg', c, head: 'stdout' }, content),
    )
    expect(result).toMatchObject({ code: 'data_loss' })
  })
})

describe('an answer that somebody else gives', () => {
  test.each<[string, Forgery]>([
    ['no exit', done(null)],
    ['a code that is a text', done({ ...exit, code: '0' })],
    ['a code that no program has', done({ ...exit, code: 256 })],
    ['neither code nor signal', done({ ...exit, code: null })],
    ['both', done({ ...exit, signal: 'SIGKILL' })],
    ['a signal that is none', done({ code: null, signal: '\u001b[31m', timedOut: false })],
    ['no word of the time limit', done({ code: 0 })],
    ['output of a third kind', all(message('stdlog'), done(exit))],
  ])('is refused for %s of a program', async (_why, exec) => {
    await expect(shell(await connectTo({ exec }), 'true')).rejects.toMatchObject(refused)
  })

  test('is refused for a summary of a hydration and a file that grows', async () => {
    const server = await connectTo({
      hydrate: done({ ...summary, entries: '1' }),
      readFile: (c, say) => say({ t: 'msg', c, head: 'content' }, content),
    })
    const request = { commit: '0'.repeat(40), branch: 'b', changes: [], contentOf: () => [] as never }
    await expect(server.hydrate(request, never)).rejects.toMatchObject(refused)
    await expect(server.readFile('a', content.length - 1, never)).rejects.toMatchObject(refused)
  })

  test('keeps its code when it is a failure, and is cut to what a person reads', async () => {
    const failure = { t: 'fail', code: 'not_found', message: 'x'.repeat(100_000), detail: { path: 'a' } }
    const server = await connectTo({ readFile: (c, say) => say({ ...failure, c }) })
    const error = await server.readFile('a', 1, never).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'not_found', detail: { path: 'a' } })
    expect((error as Error).message.length).toBeLessThanOrEqual(4096)
  })

  test.each<[string, (c: number) => object]>([
    ['a failure with a code that is none', (c) => ({ t: 'fail', c, code: 'evil', message: '', detail: {} })],
    [
      'a failure with a code of the host',
      (c) => ({ t: 'fail', c, code: 'aborted', message: '', detail: {} }),
    ],
    [
      'a failure with a list as detail',
      (c) => ({ t: 'fail', c, code: 'internal', message: '', detail: { a: [] } }),
    ],
    ['a header of another kind', (c) => ({ t: 'call', c, method: 'evil', params: null })],
    ['a header without a call', () => ({ t: 'end' })],
    ['a header that is a list', () => []],
    ['credit that is no number', (c) => ({ t: 'credit', c, n: '1' })],
    ['credit that was never used', (c) => ({ t: 'credit', c, n: 2 ** 40 })],
  ])('ends the link for %s', async (_why, header) => {
    const server = await connectTo({ exec: (c, say) => say(header(c)) })
    await expect(shell(server, 'true')).rejects.toMatchObject({ code: 'unavailable' })
    expect(await server.lost).toContain('its output is not the protocol')
  })
})
