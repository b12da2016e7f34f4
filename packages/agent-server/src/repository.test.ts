import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { foldChanges } from '@tutti/workspace'
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

const branch = 'tutti/bc-1'
const files = ['f1', 'f2', 'f3']

/** What git says of a repository in all that is kept. */
const inspect = [
  'git ls-files -s',
  'git ls-files -v',
  'git status --porcelain=v2 --branch',
  'git symbolic-ref -q HEAD || echo detached',
  'git rev-parse HEAD || true',
  'git for-each-ref',
  'git stash list --format="%H %gs"',
  'git log --all --format="%H %s" || true',
  'git fsck --full --no-dangling',
  'cat .git/config .git/config.worktree .git/info/exclude .git/MERGE_AUTOSTASH 2>/dev/null || true',
  'cut -d" " -f2 .git/sequencer/todo .git/MERGE_AUTOSTASH 2>/dev/null | git cat-file --batch-check',
].join('; echo ---; ')

describe('the repository of an agent', { timeout: 60_000 }, () => {
  let bench: TestBench
  beforeAll(async () => {
    bench = await createTestBench((folder) => {
      for (const name of files) writeFileSync(join(folder, name), `${name}\n`.repeat(20))
    })
  })
  afterAll(() => bench.dispose())

  async function run(server: AgentServer, lines: string): Promise<string> {
    const { stdout, stderr, code } = await shell(server, `export GIT_EDITOR=true\n${lines}`)
    expect({ code, stderr: code === 0 ? '' : stderr, lines }).toMatchObject({ code: 0 })
    return stdout
  }
  /** A new sandbox with what these captures brought. */
  async function next(...captures: readonly Recorded[]): Promise<AgentServer> {
    const { server } = await bench.start()
    const contents = new Map(captures.flatMap(({ contents }) => [...contents]))
    const packs = captures.flatMap((recorded) => recorded.packs)
    const from = packs.findLastIndex(({ report }) => report.onto === undefined)
    const newest = packs.at(-1)
    await server.hydrate(
      {
        commit: bench.commit,
        branch,
        changes: foldChanges(captures.flatMap(({ changes }) => changes)),
        contentOf: async function* (hash) {
          yield contents.get(hash)!
        },
        ...(newest && {
          git: {
            commit: newest.report.commit,
            packs: packs.slice(from).map(async function* ({ pack }) {
              yield pack
            }),
          },
        }),
      },
      never,
    )
    return server
  }
  const capture = async (server: AgentServer): Promise<Recorded> => {
    const recorded = recordCapture()
    await server.capture(recorded.sink, never)
    return recorded
  }

  const shapes: Readonly<Record<string, string>> = {
    'a commit': 'echo x >> f1; git commit -qam C2',
    'an amended commit':
      'echo x >> f1; git commit -qam C2; echo y >> f1; git commit -qa --amend -m C2b; echo z >> f2',
    'three commits squashed by a rebase': [
      'for i in 1 2 3; do echo $i >> f1; git commit -qam c$i; done',
      'GIT_SEQUENCE_EDITOR="sed -i 2,3s/pick/fixup/" git rebase -qi HEAD~3; echo z >> f2',
    ].join('\n'),
    'a detached HEAD':
      'git checkout -qb work; echo x >> f1; git commit -qam C2; git checkout -q --detach HEAD~1; echo d >> f2; git commit -qam D1; echo g > g.txt',
    'branches, tags and a tag of a tag':
      'git branch other; git tag light; git tag -a v1 -m one; git tag -a v2 v1 -m two; git tag tree HEAD^{tree}; git tag blob HEAD:f1; git branch -m renamed',
    stashes:
      'echo 1 >> f1; git stash push -qm first; echo 2 >> f2; echo u > untracked; git stash push -qum "second one"',
    'staged work':
      'echo s >> f1; git add f1; echo t >> f1; echo n > new; git add new; rm new; git rm -q --cached f3; chmod +x f2; git add f2',
    'what is to be added':
      'echo n > new; git add -N new; git update-index --assume-unchanged f1; git update-index --skip-worktree f2',
    'what is to be added, and is something else by now':
      'echo n > gone; echo n > file; ln -s x link; echo n > tool; chmod +x tool; git add -N .; git update-index --assume-unchanged file; git update-index --skip-worktree tool; rm gone link tool file; mkdir file link; echo x > file/x; echo x > link/x',
    'a merge in conflict':
      'git checkout -qb a; echo a > f1; git commit -qam a; git checkout -qb b HEAD~1; echo b > f1; git commit -qam b; git merge -q a || true',
    'a rebase in conflict':
      'git checkout -qb a; echo a > f1; git commit -qam a; git checkout -qb b HEAD~1; echo b > f1; git commit -qam b; echo c >> f2; git commit -qam c; git rebase -q a || true',
    'a cherry-pick in conflict':
      'git checkout -qb a; echo a > f1; git commit -qam a; git checkout -qb b HEAD~1; echo b > f1; git commit -qam b; git cherry-pick a || true',
    'a branch without a commit':
      'git checkout -q --orphan fresh; git rm -rqf --cached .; echo o > only; git add only',
    'everything removed from the index': 'git rm -rq --cached .',
    'a merge in conflict with work put aside':
      'git checkout -qb a; echo a > f1; git commit -qam a; git checkout -qb b HEAD~1; echo b > f1; git commit -qam b; echo c >> f2; git merge -q --autostash a || true; cat .git/MERGE_AUTOSTASH',
    'a cherry-pick of commits that nothing else names':
      'git checkout -qb a; for n in 1 2 3; do echo $n > f1; git commit -qam c$n; done; git checkout -qb b HEAD~3; echo b > f1; git commit -qam b; git cherry-pick a~2 a~1 a || true; git branch -qD a',
    'a sparse checkout':
      'mkdir d e; echo x > d/x; echo x > e/x; git add -A; git commit -qm d; git sparse-checkout set d',
    'settings, excludes and hooks':
      'git config user.name Else; echo "*.tmp" >> .git/info/exclude; mkdir -p .git/hooks; echo exit 0 > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo t > a.tmp',
    'odd names': String.raw`n=$(printf 'caf\303\251 \377\n "q"'); echo o > "$n"; git add -A; git commit -qm "$(printf 'odd \351')"; git branch "$(printf 'b\303\251')"`,
  }

  test.for(Object.entries(shapes))('%s is the same in the next sandbox', async ([, work]) => {
    const first = await next()
    await run(first, work)
    const before = await run(first, inspect)
    const second = await next(await capture(first))
    expect(await run(second, inspect)).toBe(before)
    expect((await capture(second)).packs).toEqual([])
    await first.close()
    await second.close()
  })

  test.each([
    [
      'merge',
      'a merge in conflict',
      'echo m > f1; git commit -qam merged; git log -1 --format=%P | wc -w',
      '2\n',
    ],
    [
      'rebase',
      'a rebase in conflict',
      'echo m > f1; git add f1; git rebase --continue >/dev/null 2>&1; git log -3 --format=%s',
      'c\nb\na\n',
    ],
  ])('a %s goes on in the next sandbox', async (_, shape, work, said) => {
    const first = await next()
    await run(first, shapes[shape]!)
    const second = await next(await capture(first))
    expect(await run(second, work)).toBe(said)
    await first.close()
    await second.close()
  })

  test('later states need only what is new, through any number of sandboxes', async () => {
    const captures: Recorded[] = []
    let server = await next()
    for (const step of ['one', 'two', 'three']) {
      await run(server, `head -c 100000 /dev/urandom > ${step}; git add -A; git commit -qm "${step}"`)
      captures.push(await capture(server))
      const before = await run(server, inspect)
      await server.close()
      server = await next(...captures)
      expect(await run(server, inspect)).toBe(before)
    }
    await server.close()
    const packs = captures.flatMap(({ packs }) => packs)
    expect(packs.map(({ report }) => report.commits.map(({ message }) => message))).toEqual([
      ['one'],
      ['two'],
      ['three'],
    ])
    expect(packs.map(({ report }) => report.onto)).toEqual([
      undefined,
      packs[0]!.report.commit,
      packs[1]!.report.commit,
    ])
    for (const { pack } of packs) expect(pack.length).toBeLessThan(110_000)
  })

  test('commits are told once: not again when another branch or an older commit is checked out', async () => {
    const server = await next()
    const told = async (work: string) => {
      await run(server, work)
      return (await capture(server)).packs.flatMap(({ report }) =>
        report.commits.map(({ message }) => message),
      )
    }
    expect(await told('echo 1 >> f1; git commit -qam c1; echo 2 >> f1; git commit -qam c2')).toEqual([
      'c1',
      'c2',
    ])
    expect(await told('git checkout -qb old HEAD~1')).toEqual([])
    expect(await told('echo 3 >> f1; git commit -qam "$(seq 2000)"')).toEqual([
      expect.stringMatching(/^1\n2\n/),
    ])
    expect(await told(`git checkout -q ${branch}; git gc -q --prune=now; git stash list`)).toEqual([])
    expect(await told('echo 4 >> f1; git commit -qam c4')).toEqual(['c4'])
    await server.close()
  })

  test('what a repository names and has not is left out; one that cannot be made again begins anew', async () => {
    const first = await next()
    await run(
      first,
      'echo x >> f1; git commit -qam C2; printf "%040d\\n" 7 > .git/refs/heads/nowhere; rm -f .git/refs/tags/*',
    )
    const recorded = await capture(first)
    const second = await next(recorded)
    expect(await run(second, 'git log --format=%s; git branch --format="%(refname:short)"')).toBe(
      `C2\nbase\n${branch}\n`,
    )
    const [pack] = recorded.packs
    const lost = { ...recorded, packs: [{ ...pack!, report: { ...pack!.report, commit: bench.commit } }] }
    const third = await next(lost)
    expect(await run(third, 'git log --format=%s; git status --porcelain')).toBe('base\n M f1\n')
    for (const server of [first, second, third]) await server.close()
  })

  test('a damaged index is told of and made anew from HEAD; the files and everything else are there', async () => {
    const first = await next()
    await run(first, 'echo x >> f1; git commit -qam C2; echo y >> f2; head -c 100 /dev/urandom > .git/index')
    const recorded = await capture(first)
    expect(recorded.skipped).toEqual([{ path: '.git/index', reason: 'unreadable' }])
    expect((await capture(first)).skipped).toEqual([])
    const second = await next(recorded)
    expect(
      await run(second, 'git log --format=%s; git status --porcelain; ls .git | grep lock || true'),
    ).toBe('C2\nbase\n M f2\n')
    await first.close()
    await second.close()
  })

  test.each([
    ['removed', 'rm -rf .git'],
    ['a link', 'mv .git ../own.git 2>/dev/null || mv .git /tmp/own.git; ln -s /tmp/own.git .git'],
    ['without a HEAD', 'rm .git/HEAD'],
    [
      'with refs that lead nowhere',
      'printf "%040d\\n" 1 > .git/refs/heads/none; printf "%040d\\n" 1 > .git/HEAD',
    ],
    ['with settings that git refuses', 'echo "[" > .git/config'],
    ['with a fifo for an index', 'rm .git/index; mkfifo .git/index'],
    ['with a lock', 'touch .git/index.lock .git/HEAD.lock'],
  ])('a repository that is %s does not keep the files from being captured', async (_, work) => {
    const server = await next()
    await run(server, `echo kept > kept; ${work}`)
    const recorded = await capture(server)
    expect(recorded.changes.map(({ action }) => action)).toEqual(['created'])
    const other = await next(recorded)
    expect(await run(other, 'cat kept; git status --porcelain')).toBe('kept\n?? kept\n')
    await server.close()
    await other.close()
  })
})
