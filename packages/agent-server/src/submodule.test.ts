import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { foldChanges, pathKey } from '@tutti/workspace'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AgentServer } from './port.ts'
import {
  createTestBench,
  never,
  recordCapture,
  shell,
  type Recorded,
  type TestBench,
} from './test-sandbox.ts'

/** A submodule whose remote lies in the workspace itself: it can be had without a network. */
function withSubmodule(folder: string): void {
  const lib = join(folder, 'lib')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: lib })
  mkdirSync(join(lib, 'folder'), { recursive: true })
  for (const name of ['file', 'gone', 'flip', 'folder/only']) writeFileSync(join(lib, name), `${name}\n`)
  writeFileSync(join(lib, '.gitignore'), '*.log\ndist/\n')
  git('init', '-q', '-b', 'main')
  git('add', '-A')
  git('commit', '-qm', 'lib')
  const commit = git('rev-parse', 'HEAD').toString().trim()
  renameSync(join(lib, '.git'), join(folder, 'lib.git'))
  rmSync(lib, { recursive: true })
  mkdirSync(lib)
  writeFileSync(join(folder, '.gitmodules'), '[submodule "lib"]\n\tpath = lib\n\turl = ./lib.git\n')
  execFileSync('git', ['update-index', '--add', '--cacheinfo', `160000,${commit},lib`], { cwd: folder })
}

const inspect =
  'git submodule status; git -C lib status --porcelain --ignored; cd lib; find . -name .git -prune -o -print | sort; cat file flip flip/x 2>/dev/null || true'

describe('a submodule', { timeout: 60_000 }, () => {
  let bench: TestBench
  beforeAll(async () => {
    bench = await createTestBench(withSubmodule)
  })
  afterAll(() => bench.dispose())

  const run = async (server: AgentServer, line: string) => {
    const { stdout, stderr, code } = await shell(server, line)
    expect({ code, stderr: code === 0 ? '' : stderr + stdout, line }).toMatchObject({ code: 0 })
    return stdout
  }
  async function next(recorded?: Recorded): Promise<AgentServer> {
    const { server } = await bench.start()
    const newest = recorded?.packs.at(-1)
    const hydrated = await server.hydrate(
      {
        commit: bench.commit,
        branch: 'work',
        changes: foldChanges(recorded?.changes ?? []),
        contentOf: async function* (hash) {
          yield recorded!.contents.get(hash)!
        },
        ...(newest && {
          git: {
            commit: newest.report.commit,
            packs: [
              (async function* () {
                yield newest.pack
              })(),
            ],
          },
        }),
      },
      never,
    )
    expect(hydrated.withoutSubmodules).toEqual([])
    return server
  }
  const capture = async (server: AgentServer): Promise<Recorded> => {
    const recorded = recordCapture()
    await server.capture(recorded.sink, never)
    return recorded
  }
  const init = 'git -c protocol.file.allow=always submodule -q update --init'

  test.each([
    ['edited, and has more', 'echo more >> file; echo new > new; mkdir -p a/b hollow; echo x > a/b/x'],
    ['without some of its files', 'rm gone folder/only; rmdir folder'],
    ['with a folder that was emptied', 'rm folder/only'],
    [
      'with a file where a folder was, and a folder where a file was',
      'rm -r folder flip; echo f > folder; mkdir flip; echo x > flip/x',
    ],
    [
      'at a commit that has less',
      'git rm -q gone; git -c user.name=t -c user.email=t@t commit -qm less; git push origin HEAD:refs/heads/less 2>&1',
    ],
    ['with small ignored files', 'echo l > own.log'],
    [
      'with odd names',
      String.raw`d=$(printf 'd\377'); mkdir "$d"; echo x > "$d/$(printf '\376')"; mkdir "$d/empty"`,
    ],
  ])('that is %s is the same in the next sandbox', async (_, work) => {
    const first = await next()
    await run(first, `${init}; cd lib; ${work}`)
    const before = await run(first, inspect)
    const recorded = await capture(first)
    expect(recorded.skipped).toEqual([])
    const second = await next(recorded)
    expect(await run(second, inspect)).toBe(before)
    expect(await capture(second)).toMatchObject({ changes: [], packs: [], skipped: [] })
    await first.close()
    await second.close()
  })

  test('what was removed from it after a capture is gone too', async () => {
    const first = await next()
    await run(first, init)
    await capture(first)
    await run(first, 'rm lib/gone')
    const recorded = await capture(first)
    expect(recorded.packs).toHaveLength(1)
    await first.close()
  })

  test('what of it is not kept is told of', async () => {
    const server = await next()
    await run(
      server,
      `${init}; cd lib; git init -q nested; echo n > nested/n; mkfifo pipe; mkdir dist; echo d > dist/d; mkfifo dist/pipe; truncate -s 2M big.log`,
    )
    const recorded = await capture(server)
    expect(
      recorded.changes.map((change) => change.action === 'deleted' || pathKey(change.state.path)),
    ).toEqual(['lib/nested/n'])
    expect(recorded.skipped).toEqual([
      { path: 'lib/big.log', reason: 'ignored' },
      { path: 'lib/dist/', reason: 'ignored' },
      { path: 'lib/nested/.git', reason: 'repository' },
      { path: 'lib/pipe', reason: 'special' },
    ])
    await server.close()
  })

  test.each([
    ['a file that leads nowhere', 'echo "gitdir: nowhere" > lib/.git'],
    ['a folder with nothing in it', 'rm lib/.git; mkdir lib/.git'],
    ['without a commit', 'rm lib/.git; git init -q lib'],
  ])('whose repository git cannot read (%s) keeps its files, and is told of', async (_, damage) => {
    const server = await next()
    await run(server, `${init}; ${damage}`)
    const recorded = await capture(server)
    expect(recorded.changes).toHaveLength(5)
    expect(recorded.skipped).toEqual([{ path: 'lib/.git', reason: 'repository' }])
    await server.close()
  })
})
