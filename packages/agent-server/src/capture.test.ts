import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { BlobId } from '@tutti/core'
import {
  changedFile,
  foldChanges,
  manifestDigest,
  pathBytes,
  pathKey,
  type CapturedChange,
  type FileState,
  type PathState,
} from '@tutti/workspace'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AgentServer } from './port.ts'
import { editScript } from './test-edits.ts'
import {
  createTestBench,
  never,
  recordCapture,
  shell,
  testPolicy,
  type Recorded,
  type TestBench,
} from './test-sandbox.ts'

const blobId = (bytes: Uint8Array): BlobId => `sha256_${createHash('sha256').update(bytes).digest('hex')}`
const latin = (name: string) => Buffer.from(name, 'latin1')

/** Whatever an ordinary checkout would change, and names that an ordinary copy would lose. */
function nastyTree(folder: string): void {
  const at = (name: string) => Buffer.concat([Buffer.from(`${folder}/`), latin(name)])
  const attributes =
    '*.crlf text eol=crlf\n*.ident ident\n*.u16 working-tree-encoding=UTF-16\n*.up filter=upper\n* text=auto\n'
  writeFileSync(at('.gitattributes'), attributes)
  writeFileSync(at('.gitignore'), 'ignored/\n*.log\n!keep.log\n')
  writeFileSync(at('a.crlf'), 'x\r\ny\r\n')
  writeFileSync(at('b.ident'), '$Id$\n')
  writeFileSync(at('d.up'), 'lower\n')
  writeFileSync(at('mixed.txt'), 'a\r\nb\nc\r\n')
  writeFileSync(at('binary'), Buffer.from([0, 1, 2, 255, 13, 10]))
  writeFileSync(at('empty'), '')
  writeFileSync(at('not utf-8 \xff\xfe'), 'bytes')
  writeFileSync(at('new\nline "quoted" \\ \t'), 'odd')
  writeFileSync(at(':(glob)magic*'), 'magic')
  mkdirSync(at('ignored'))
  writeFileSync(at('ignored/tracked'), 'tracked although ignored')
  mkdirSync(at('deep/er'), { recursive: true })
  writeFileSync(at('deep/er/tool.sh'), '#!/bin/sh\n')
  chmodSync(at('deep/er/tool.sh'), 0o755)
  symlinkSync('nowhere/\xff', at('dangling'))
  symlinkSync('deep', at('to-folder'))
  for (const path of ['submodule', 'mods/sub']) {
    mkdirSync(at(path), { recursive: true })
    const gitlink = `160000,${'1'.repeat(40)},${path}`
    execFileSync('git', ['update-index', '--add', '--cacheinfo', gitlink], { cwd: folder })
  }
}

/** Room for one file that is larger than what is captured. */
const limits = { ...testPolicy.limits, fileBytes: 1 << 30, diskBytes: 1 << 30 }

/** The files of a commit, by path key: what hydration must give. */
function committed(bench: TestBench): Map<string, PathState> {
  const mirror = join(bench.folder, 'mirror.git')
  const git = (...args: string[]) =>
    execFileSync('git', ['--git-dir', mirror, ...args], { maxBuffer: 1 << 26 })
  const states = new Map<string, PathState>()
  for (const line of pathKey(git('ls-tree', '-r', '-z', bench.commit))
    .split('\0')
    .filter(Boolean)) {
    if (line.startsWith('160000 ')) continue
    const [mode, , id] = line.slice(0, line.indexOf('\t')).split(' ') as [FileState['mode'], string, string]
    const key = line.slice(line.indexOf('\t') + 1)
    const content = git('cat-file', 'blob', id)
    const fileType = mode === '120000' ? 'symlink' : 'file'
    states.set(key, { path: pathBytes(key), fileType, mode, size: content.length, hash: blobId(content) })
  }
  return states
}

function applyTo(states: Map<string, PathState>, changes: readonly CapturedChange[]): void {
  for (const change of foldChanges(changes)) {
    if (change.action === 'deleted') states.delete(pathKey(change.path))
    else states.set(pathKey(change.state.path), change.state)
  }
}

describe('capture', () => {
  let bench: TestBench
  beforeAll(async () => {
    bench = await createTestBench(nastyTree)
  })
  afterAll(async () => {
    await bench.dispose()
  })
  const hydrated = async (
    changes: readonly CapturedChange[] = [],
    contents = new Map<string, Buffer>(),
    from: { commit: string; head?: string } = { commit: bench.commit },
  ) => {
    const { server, sandbox } = await bench.start({ policy: { limits } })
    const summary = await server.hydrate(
      {
        ...from,
        branch: 'agent/work',
        changes,
        async *contentOf(hash) {
          yield contents.get(hash)!
        },
      },
      never,
    )
    return { server, summary, destroy: () => bench.provider.destroy(sandbox.ref, never) }
  }
  const capture = async (server: AgentServer): Promise<Recorded & { digest: string; entries: number }> => {
    const recorded = recordCapture()
    const summary = await server.capture(recorded.sink, never)
    return { ...recorded, digest: summary.manifestDigest, entries: summary.entries }
  }
  const named = (recorded: Recorded) =>
    recorded.changes.map((change) =>
      change.action === 'deleted'
        ? `- ${pathKey(change.path)}`
        : `${change.action === 'created' ? '+' : '~'} ${pathKey(change.state.path)} ${change.state.mode}${changedFile(change)?.ignored ? ' ignored' : ''}`,
    )

  test('hydrates a commit byte for byte, whatever its attributes say', async () => {
    const { server, summary, destroy } = await hydrated()
    const expected = committed(bench)
    expect(summary).toEqual({
      manifestDigest: manifestDigest(expected.values()),
      entries: expected.size,
      changes: 0,
      wrong: [],
      withoutSubmodules: [],
      withoutRepository: false,
    })
    expect((await capture(server)).changes).toEqual([])
    const git = await shell(
      server,
      'git rev-parse --abbrev-ref HEAD; git log --oneline | wc -l; git status --short | wc -l',
    )
    expect(git).toMatchObject({ code: 0, stdout: 'agent/work\n1\n0\n' })
    expect(
      (await shell(server, 'echo x > y; git add y; git commit -q -m mine; git log --format=%an -1')).stdout,
    ).toBe('Tutti Agent\n')
    await destroy()
  })

  test('a branch that stands before the commit: the files are those of the changes, and git shows what differs', async () => {
    const mirror = join(bench.folder, 'mirror.git')
    const git = (args: string[], input = '') =>
      execFileSync(
        'git',
        ['--git-dir', mirror, '-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args],
        {
          input,
          encoding: 'utf8',
        },
      ).trim()
    const blob = git(['hash-object', '-w', '--stdin'], 'checkpoint\n')
    const kept = git(['ls-tree', bench.commit])
      .split('\n')
      .filter((line) => !line.endsWith('\tempty'))
    const lines = [...kept, `100644 blob ${blob}\tempty`, `100644 blob ${blob}\tfresh`]
    const tree = git(['mktree', '--missing'], `${lines.join('\n')}\n`)
    const commit = git(['commit-tree', tree, '-p', bench.commit, '-m', 'checkpoint'])
    const text = Buffer.from('later\n')
    const changed = (name: string): CapturedChange => ({
      action: 'modified',
      state: {
        path: Buffer.from(name),
        fileType: 'file',
        mode: '100644',
        size: text.length,
        hash: blobId(text),
      },
    })
    const { server, destroy } = await hydrated(
      [changed('empty'), changed('fresh'), { action: 'deleted', path: Buffer.from('binary') }],
      new Map([[blobId(text), text]]),
      { commit, head: bench.commit },
    )
    const { stdout } = await shell(server, 'cat empty fresh; git rev-parse agent/work; git status --short')
    expect(stdout).toBe(`later\nlater\n${bench.commit}\n D binary\n M empty\n?? fresh\n`)
    await destroy()
  })

  test('reports new, edited, deleted, mode, link and type changes, and hidden edits', async () => {
    const { server, destroy } = await hydrated()
    await shell(
      server,
      `echo new > new; printf '' > empty2; chmod 755 binary; chmod 644 deep/er/tool.sh; rm b.ident
       printf 'same' > mixed.txt; ln -sfn elsewhere dangling
       rm -r deep; echo file > deep; rm empty; mkdir empty; echo inside > empty/inside; rm to-folder; mkdir to-folder; mkdir hollow
       printf 'x\\ry\\r\\n' > a.crlf.tmp; touch -r a.crlf a.crlf.tmp; mv a.crlf.tmp a.crlf`,
    )
    const first = await capture(server)
    expect(named(first)).toEqual([
      '~ a.crlf 100644',
      '- b.ident',
      '~ binary 100755',
      '~ dangling 120000',
      '+ deep 100644',
      '- deep/er/tool.sh',
      '- empty',
      '+ empty/inside 100644',
      '+ empty2 100644',
      '+ hollow 040000',
      '~ mixed.txt 100644',
      '+ new 100644',
      '~ to-folder 040000',
    ])
    const states = committed(bench)
    applyTo(states, first.changes)
    expect(first.digest).toBe(manifestDigest(states.values()))
    expect(first.changes.find((change) => change.action === 'deleted')?.base).toBe(
      blobId(Buffer.from('$Id$\n')),
    )

    // Same size and times as before: only ctime tells.
    await shell(server, `touch -r new stamp; printf 'neu\\n' > new; touch -r stamp new; rm stamp`)
    expect(named(await capture(server))).toEqual(['~ new 100644'])
    await destroy()
  })

  test('keeps folders with nothing in them, and no others', async () => {
    const { server, destroy } = await hydrated()
    await shell(server, `mkdir -p one two/three ignored/four 'git~1' 'é'; rm deep/er/tool.sh`)
    expect(named(await capture(server))).toEqual([
      '+ deep/er 040000',
      '- deep/er/tool.sh',
      '+ ignored/four 040000',
      '+ one 040000',
      '+ two/three 040000',
      '+ \xc3\xa9 040000',
    ])
    // Once captured it stays so, whatever is ignored later; one that is filled has no entry of its own.
    await shell(
      server,
      `printf 'one/\n' >> .gitignore; echo x > two/three/x; rmdir deep/er; echo file > deep/er`,
    )
    const { changes } = await capture(server)
    expect(named({ changes } as Recorded)).toEqual([
      '~ .gitignore 100644',
      '+ deep/er 100644',
      '- two/three',
      '+ two/three/x 100644',
    ])
    // What is not captured fills no folder; and where a submodule belongs, its end is not the folder's.
    await shell(server, 'mkdir logs; rmdir mods/sub')
    expect(named(await capture(server))).toEqual(['+ logs 040000'])
    await shell(server, 'truncate -s 2M logs/a.log; mkfifo logs/pipe; mkdir mods/sub; echo x > mods/sub/x')
    // What is in a submodule's folder is no reason for an entry of the folder.
    expect(named(await capture(server))).toEqual(['+ mods/sub/x 100644 ignored'])
    await shell(server, 'rmdir one; mkdir one; rm deep/er; mkdir deep/er')
    const again = await capture(server)
    expect(named(again)).toEqual(['~ deep/er 040000'])
    expect(again.changes[0]!.base).toBe(blobId(Buffer.from('file\n')))
    await destroy()
  })

  test('marks what git ignores unless it is tracked, and follows the rules when they change', async () => {
    const { server, destroy } = await hydrated()
    await shell(
      server,
      `echo 1 > a.log; echo 1 > keep.log; echo 1 > ignored/new; echo 2 > ignored/tracked; mkdir -p sub/ignored; echo 1 > sub/ignored/x`,
    )
    expect(named(await capture(server))).toEqual([
      '+ a.log 100644 ignored',
      '+ ignored/new 100644 ignored',
      '~ ignored/tracked 100644',
      '+ keep.log 100644',
      '+ sub/ignored/x 100644 ignored',
    ])
    await shell(server, `git add -f ignored/new`)
    expect(named(await capture(server))).toEqual(['~ ignored/new 100644'])
    await shell(server, `printf 'sub/\n' > .gitignore`)
    expect(named(await capture(server))).toEqual(['~ .gitignore 100644', '~ a.log 100644'])
    await shell(server, `rm .gitignore`)
    expect(named(await capture(server))).toEqual(['- .gitignore', '~ sub/ignored/x 100644'])
    // Tracked is what the base or the agent's index has; what was captured and is ignored now is in no commit any more.
    await shell(
      server,
      `echo '*' > .gitignore; echo 2 > a.log; echo 1 > other; echo 'more' > .git/info/exclude`,
    )
    expect(named(await capture(server))).toEqual([
      '+ .gitignore 100644',
      '~ a.log 100644 ignored',
      '~ keep.log 100644 ignored',
      '+ other 100644 ignored',
      '~ sub/ignored/x 100644 ignored',
    ])
    expect(named(await capture(server))).toEqual([])
    await destroy()
  })

  test('goes on without a usable .git, and keeps nested repositories’ files but not their .git', async () => {
    const { server, destroy } = await hydrated()
    await shell(
      server,
      `git init -q nested; echo 1 > 'a\\b'; echo 1 > 'a\\.git'; echo 1 > nested/file; echo 1 > submodule/file; rm -rf .git; echo 1 > left.txt; echo 1 > x.log; mkdir -p .GIT; echo 1 > .GIT/config`,
    )
    const recorded = await capture(server)
    expect(named(recorded)).toEqual([
      '+ a\\b 100644',
      '+ left.txt 100644',
      '+ nested/file 100644',
      '+ submodule/file 100644 ignored',
      '+ x.log 100644 ignored',
    ])
    expect(recorded.skipped.toSorted((a, b) => a.path.localeCompare(b.path))).toEqual([
      { path: '.git', reason: 'unreadable' },
      { path: '.GIT', reason: 'unsafe_name' },
      { path: 'a\\.git', reason: 'unsafe_name' },
      { path: 'nested/.git', reason: 'repository' },
    ])
    await destroy()
  })

  const damages: readonly [string, string][] = [
    ['.git is a file', 'rm -rf .git; echo "gitdir: x" > .git'],
    ['.git/info is a file', 'rm -rf .git/info; echo y > .git/info'],
    ['.git is a link to itself', 'rm -rf .git; ln -s .git .git'],
    ['.git is shut', 'chmod 000 .git'],
    ['the exclude file is a folder', 'rm -f .git/info/exclude; mkdir -p .git/info/exclude'],
    ['the place of our own repository is taken', 'rm -rf ~/.tutti; echo x > ~/.tutti; echo > ~/.tutti'],
    ['the workspace is shut', 'chmod 000 .'],
  ]
  test.each(damages)('captures the work although %s', async (_, damage) => {
    const { server, destroy } = await hydrated()
    await shell(server, `echo new > new.txt; ${damage}`)
    expect(named(await capture(server))).toContain('+ new.txt 100644')
    await destroy()
  })

  test('captures what is left when the agent has deleted all and shut the workspace', async () => {
    const { server, destroy } = await hydrated()
    await shell(server, 'rm -rf -- * .[!.]*; echo left > left; chmod 000 .')
    const { changes, digest } = await capture(server)
    expect(changes).toHaveLength(committed(bench).size + 1)
    const states = committed(bench)
    applyTo(states, changes)
    expect([...states.keys()]).toEqual(['left'])
    expect(digest).toBe(manifestDigest(states.values()))
    await destroy()
  })

  test('a folder whose files cannot be looked at is not taken for an empty one', async () => {
    const { server, destroy } = await hydrated()
    await shell(server, 'mkdir shut; echo 1 > shut/a')
    await capture(server)
    await shell(server, 'chmod 600 shut')
    const recorded = await capture(server)
    expect(named(recorded)).toEqual([])
    expect(recorded.skipped).toEqual([{ path: 'shut/a', reason: 'unreadable' }])
    // But one of which nothing is known, and folders on the way to what nobody can look at, are.
    await shell(server, 'mkdir -p on/way lone; echo 1 > lone/a; mkdir -m 000 on/way/shut; chmod 600 lone')
    expect(named(await capture(server))).toEqual(['+ lone 040000', '+ on/way 040000'])
    await destroy()
  })

  test('a setup command that runs again undoes nothing of the agent’s, and is no change of it', async () => {
    const setup =
      'printf made > made; printf made > edited; printf made > removed; mkdir -p tree; printf made > tree/in; chmod 644 deep/er/tool.sh'
    const first = await hydrated()
    await shell(first.server, setup)
    await first.server.absorb(never)
    const before = await capture(first.server)
    expect(before.changes).toEqual([])
    expect(before.digest).toBe(first.summary.manifestDigest)
    await shell(
      first.server,
      'printf mine > edited; rm removed; rm -r tree; ln -s made tree; printf "#!" > deep/er/tool.sh',
    )
    const work = await capture(first.server)
    const second = await hydrated(foldChanges(work.changes), work.contents)
    expect(second.summary.manifestDigest).toBe(work.digest)
    await second.server.keepWork(never)
    await shell(second.server, setup.replaceAll('made > ', 'again > '))
    await second.server.absorb(never)
    const after = await capture(second.server)
    expect(after.changes).toEqual([])
    expect(after.digest).toBe(work.digest)
    expect(
      (await shell(second.server, 'cat made edited; readlink tree; ls removed; cat deep/er/tool.sh')).stdout,
    ).toBe('againminemade\n#!')
    await first.destroy()
    await second.destroy()
  })

  test('what is put back after a setup command is not removed with its folder', async () => {
    const first = await hydrated()
    await shell(first.server, 'mkdir out; echo 1 > out/report; mkdir bare')
    const one = await capture(first.server)
    await shell(first.server, 'rm out/report')
    const two = await capture(first.server)
    await shell(first.server, 'echo 2 > out/report')
    const three = await capture(first.server)
    const changes = [...one.changes, ...two.changes, ...three.changes]
    const contents = new Map([...one.contents, ...two.contents, ...three.contents])
    const second = await hydrated(foldChanges(changes), contents)
    await second.server.keepWork(never)
    await shell(second.server, 'rm -r out; echo made > bare/made')
    await second.server.absorb(never)
    expect((await shell(second.server, 'cat out/report bare/made')).stdout).toBe('2\nmade\n')
    await first.destroy()
    await second.destroy()
  })

  test('an abort while the host stores a capture leaves both with the same', async () => {
    const { server, destroy } = await hydrated()
    await shell(server, 'echo 1 > passing')
    const caller = new AbortController()
    const recorded = recordCapture()
    const taken = await server.capture(
      { ...recorded.sink, committed: async () => caller.abort() },
      caller.signal,
    )
    expect(taken.changes).toBe(1)
    await shell(server, 'rm passing')
    expect(named(await capture(server))).toEqual(['- passing'])
    await destroy()
  })

  test('no fifo in the place of a file that git reads makes a capture wait', async () => {
    const { server, destroy } = await hydrated()
    const fifos = '.git/info/exclude .git/HEAD .git/config .git/index sub/.gitignore'
    await shell(
      server,
      `mkdir -p sub; for file in ${fifos}; do rm -f "$file"; mkfifo "$file"; done; echo two > two; echo two > two.log; echo x > sub/x.log`,
    )
    const start = performance.now()
    const recorded = await capture(server)
    expect(named(recorded)).toEqual(['+ sub/x.log 100644', '+ two 100644', '+ two.log 100644 ignored'])
    expect(recorded.skipped).toEqual([
      { path: '.git', reason: 'unreadable' },
      { path: '.git/info/exclude', reason: 'special' },
      { path: 'sub/.gitignore', reason: 'special' },
    ])
    await shell(server, 'rm -f .gitignore; mkfifo .gitignore; echo all > all.log')
    expect(named(await capture(server))).toEqual(['- .gitignore', '+ all.log 100644', '~ two.log 100644'])
    expect(performance.now() - start).toBeLessThan(5000)
    await expect(server.readFile('.gitignore', 10, never)).rejects.toMatchObject({ code: 'invalid_argument' })
    await destroy()
  })

  test('git that does not answer costs its time limit, the ignore rules and nothing else', async () => {
    const { server, destroy } = await hydrated()
    await shell(server, `echo a > a; echo a > a.log`)
    expect(named(await capture(server))).toEqual(['+ a 100644', '+ a.log 100644 ignored'])
    await shell(server, `rm ~/.tutti/ignore/HEAD; mkfifo ~/.tutti/ignore/HEAD; echo b > b`)
    const recorded = await capture(server)
    expect(named(recorded)).toContain('+ b 100644')
    expect(recorded.skipped).toEqual([{ path: '.gitignore', reason: 'unreadable' }])
    const left = await shell(server, 'for file in /proc/[0-9]*/comm; do cat "$file"; done')
    expect(left.stdout).not.toContain('git')
    await shell(server, `printf '*.log\\n*.txt\\n' > .gitignore; echo c > c.txt; echo d > d`)
    expect(named(await capture(server))).toEqual([
      '~ .gitignore 100644',
      '+ c.txt 100644 ignored',
      '+ d 100644',
    ])
    await destroy()
  }, 60_000)

  test('skips what cannot be kept, says so once, and takes no unreadable folder for deleted', async () => {
    const { server, destroy } = await hydrated()
    await shell(server, `mkfifo pipe; chmod 000 deep; truncate -s 600M huge; mkdir 'git~1'; echo fine > fine`)
    const first = await capture(server)
    expect(named(first)).toEqual(['+ fine 100644'])
    expect(first.skipped).toContainEqual({ path: 'pipe', reason: 'special' })
    expect(first.skipped).toContainEqual({ path: 'huge', reason: 'too_large' })
    expect(first.skipped).toContainEqual({ path: 'git~1', reason: 'unsafe_name' })
    expect((await capture(server)).skipped).toEqual([])
    await shell(server, 'chmod 755 deep')
    expect((await capture(server)).changes).toEqual([])
    await destroy()
  })

  test('reports again what a failed capture could not hand over', async () => {
    const { server, destroy } = await hydrated()
    await shell(server, 'echo 1 > one; echo 2 > two')
    const failing = {
      ...recordCapture().sink,
      change: async () => Promise.reject(new Error('store is full')),
    }
    await expect(server.capture(failing, never)).rejects.toThrow('store is full')
    await expect(server.capture(recordCapture().sink, AbortSignal.abort())).rejects.toMatchObject({
      code: 'cancelled',
    })
    const [again, then] = await Promise.all([capture(server), capture(server)])
    expect(named(again)).toEqual(['+ one 100644', '+ two 100644'])
    expect(then.changes).toEqual([])
    await destroy()
  })

  test('hands over large files whole while they change', async () => {
    const { server, destroy } = await hydrated()
    const writer = server.exec(
      {
        argv: [
          '/bin/sh',
          '-c',
          'head -c 9000000 /dev/urandom > big; echo ready; while :; do head -c 9000000 /dev/urandom > big; done',
        ],
      },
      never,
    )
    await writer.next()
    for (let round = 0; round < 3; round += 1) {
      const { contents, changes } = await capture(server)
      for (const [hash, bytes] of contents) expect(blobId(bytes)).toBe(hash)
      expect(changes.length).toBeLessThan(2)
    }
    await server.killProcesses(never)
    while (!(await writer.next()).done);
    const last = await capture(server)
    const sum = (await shell(server, 'sha256sum big')).stdout.slice(0, 64)
    const known = [...last.contents.keys()].at(-1) ?? `sha256_${sum}`
    expect(known).toBe(`sha256_${sum}`)
    await destroy()
  })

  test('any sequence of edits is captured exactly, and hydrates elsewhere to the same digest', async () => {
    const names = [
      'a',
      'b',
      'a/x',
      'a/y',
      'b/a/x',
      'é',
      '\xff\xfe',
      'e\u0301',
      'new\nline',
      ' lead',
      '-dash',
      'binary',
    ]
    const edit = fc.record({
      kind: fc.constantFrom('write', 'write', 'remove', 'chmod', 'link', 'folder', 'move'),
      name: fc.constantFrom(...names),
      other: fc.constantFrom(...names),
      content: fc.uint8Array({ maxLength: 40 }),
    })
    const { server, destroy } = await hydrated()
    const states = committed(bench)
    const log: CapturedChange[] = []
    const contents = new Map<string, Buffer>()
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 12 }), async (edits) => {
        await server.writeFile('.git/edit.mjs', Buffer.from(editScript), never)
        const wire = edits.map((one) => ({
          ...one,
          name: latin(one.name).toString('hex'),
          other: latin(one.other).toString('hex'),
          content: Buffer.from(one.content).toString('hex'),
        }))
        const run = server.exec(
          { argv: ['/opt/node/bin/node', '.git/edit.mjs', JSON.stringify(wire)] },
          never,
        )
        let next = await run.next()
        while (!next.done) next = await run.next()
        expect(next.value.code).toBe(0)
        const recorded = await capture(server)
        for (const change of recorded.changes) {
          const key = pathKey(change.action === 'deleted' ? change.path : change.state.path)
          const before = states.get(key)
          const file = before?.fileType === 'dir' ? undefined : before
          if (change.action === 'deleted') expect(before).toBeDefined()
          else expect(change.action).toBe(file ? 'modified' : 'created')
          expect(change.base).toBe(file?.hash)
        }
        log.push(...recorded.changes)
        for (const [hash, bytes] of recorded.contents) contents.set(hash, bytes)
        applyTo(states, recorded.changes)
        expect(recorded.digest).toBe(manifestDigest(states.values()))
        expect(recorded.entries).toBe(states.size)
      }),
      { numRuns: 25 },
    )
    const final = await capture(server)
    const copy = await hydrated(foldChanges(log), contents)
    expect(copy.summary.manifestDigest).toBe(final.digest)
    const unordered = await hydrated(log, contents)
    expect(unordered.summary.manifestDigest).toBe(final.digest)
    await Promise.all([destroy(), copy.destroy(), unordered.destroy()])
  }, 90_000)
})
