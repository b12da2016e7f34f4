import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { RunJson } from './run-json.ts'

const temporalPath = inject('temporalServer')

const fileCount = 3000

/** What the agent does: it runs in the sandbox and, for comparison, in a plain clone. */
const work = String.raw`set -eu
# new, in new folders; empty; without a newline at the end; with CR LF
mkdir -p new/deep/er
for i in $(seq 1 300); do echo "new $i" > "new/deep/er/file$i"; done
: > new/empty
printf 'no newline' > new/no-newline
printf 'a\r\nb\r\n' > new/crlf
# edited, every tenth; deleted, every eleventh; whole folders gone
for i in $(seq 10 10 3000); do echo changed >> "src/d$((i % 40))/f$i.txt"; done
for i in $(seq 11 11 3000); do rm -f "src/d$((i % 40))/f$i.txt"; done
rm -r src/d7 src/d8
# modes and links
chmod +x src/d1/f1.txt
chmod -x tool.sh
ln -s ../src/d1/f1.txt new/link
ln -s /nowhere/at/all new/dangling
ln -s . new/loop
rm was-link && echo a file now > was-link
rm was-file && ln -s tool.sh was-file
ln -sfn other retargeted
# a folder becomes a file, a file a folder
rm -r swap-dir && echo file > swap-dir
rm swap-file && mkdir -p swap-file/in/side && echo folder > swap-file/in/side/f
# bytes of every value, and a larger one
awk 'BEGIN { for (i = 0; i < 256; i++) printf "%c", i }' < /dev/null > new/awk-bytes
for i in 0 1 2 3; do for j in 0 1 2 3 4 5 6 7; do for k in 0 1 2 3 4 5 6 7; do printf "\\$i$j$k"; done; done; done > new/all-bytes
yes 0123456789abcdef | head -c 5000000 > new/large
# names: spaces, quotes, backslash, newline, dash, non-ASCII in both forms, not UTF-8, long
echo 1 > 'new/a b'; echo 2 > 'new/"q"'; echo 3 > "new/it's"; echo 4 > 'new/back\slash'
echo 5 > "$(printf 'new/line\nbreak')"; echo 6 > new/-dash; echo 7 > 'new/*'; echo 8 > 'new/tab	tab'
echo 9 > "$(printf 'new/\303\244')"; echo 10 > "$(printf 'new/a\314\210')"; echo 11 > 'new/日本語'
echo 12 > "$(printf 'new/\377\376')"; echo 13 > "$(printf 'new/x\200y')"
mkdir "$(printf 'new/d\374r')"; echo 14 > "$(printf 'new/d\374r/f')"
rm "$(printf 'latin\351')"; echo 15 > "new/$(printf '%0200d' 7)"
echo a > new/Case; echo b > new/case
mkdir -p "new/.github"; echo 16 > new/.github/x; echo 17 > new/.gitkeep; echo 18 > new/git
# ignored: not delivered, unless the base has it
mkdir -p build; echo out > build/out.o; echo kept > build/kept
`

describe.skipIf(!temporalPath)('what is delivered', { timeout: 240_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository
  const scratch = mkdtempSync(join(tmpdir(), 'tutti-exact-'))

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '2' } })
    await stack.start()
    const files: Record<string, string> = {
      'tool.sh': '#!/bin/sh\n',
      'was-file': 'file\n',
      'swap-file': 'f\n',
    }
    for (let n = 1; n <= fileCount; n += 1) files[`src/d${n % 40}/f${n}.txt`] = `file ${n}\n`
    repository = createTestRepository({ ...files, 'swap-dir/a/b': 'b\n', '.gitignore': 'build/\n' })
    execFileSync(
      'sh',
      [
        '-euc',
        String.raw`chmod +x tool.sh; ln -s tool.sh was-link; ln -s tool.sh retargeted; mkdir build; echo base > build/kept
        echo l > "$(printf 'latin\351')"; git add -A; git add -f build/kept
        git -c user.name=Test -c user.email=test@localhost commit -qm more`,
      ],
      { cwd: repository.path },
    )
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
    rmSync(scratch, { recursive: true, force: true })
  })

  /** The tree that the work makes, by plain git in a plain clone. */
  function expectedTree(): string {
    const clone = join(scratch, 'clone')
    execFileSync('git', ['clone', '-q', repository.path, clone])
    execFileSync('bash', ['-c', work], { cwd: clone })
    execFileSync('git', ['add', '-A'], { cwd: clone })
    const tree = execFileSync('git', ['write-tree'], { cwd: clone, encoding: 'utf8' }).trim()
    execFileSync('git', ['push', '-q', 'origin', `${commitOf(clone, tree)}:refs/expected/tree`], {
      cwd: clone,
    })
    return tree
  }
  const commitOf = (clone: string, tree: string) =>
    execFileSync(
      'git',
      ['-c', 'user.name=T', '-c', 'user.email=t@localhost', 'commit-tree', '-m', 'x', tree],
      {
        cwd: clone,
        encoding: 'utf8',
      },
    ).trim()

  test('the delivered tree is exactly what the agent made, byte for byte', async () => {
    const tree = expectedTree()
    const result = await stack.json<RunJson>([
      'run',
      work,
      '--repo',
      repository.path,
      '--agent',
      'command:bash {prompt_file}',
      '--agents',
      '1',
    ])
    expect(result).toMatchObject({ phase: 'COMPLETED', reason: 'completed' })
    const branch = result.synthesis!.branch
    expect(repository.git('diff', '--stat', 'refs/expected/tree', branch)).toBe('')
    expect(repository.git('rev-parse', `${branch}^{tree}`).trim()).toBe(tree)
    expect(repository.git('fsck', '--strict', '--full')).not.toMatch(/error|fatal/)
    // And it is not what was there before.
    expect(Number(repository.git('diff', '--name-only', 'main', branch).split('\n').length)).toBeGreaterThan(
      1000,
    )
    expect(result.attempts[0]!.files_changed).toBe(
      repository.git('diff', '-z', '--no-renames', '--name-only', 'main', branch).split('\0').length - 1,
    )
  })
})
