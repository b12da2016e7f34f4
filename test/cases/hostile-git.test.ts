import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { driveAgent, shellOutput, startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'

const temporalPath = inject('temporalServer')

const hooks = [
  'applypatch-msg pre-applypatch post-applypatch pre-commit prepare-commit-msg commit-msg post-commit pre-rebase',
  'post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update reference-transaction',
  'push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman p4-changelist post-index-change',
].join(' ')

/** Everything in a repository that can name a program, each leaving a file of its own where only the host has the folder. */
const attack = (canaries: string) => String.raw`run: <<EOF
fire() { printf 'touch ${canaries}/%s' "$1"; }
for name in core.fsmonitor core.sshCommand core.pager core.editor core.askPass core.gitProxy core.alternateRefsCommand \
  filter.x.clean filter.x.smudge filter.x.process diff.x.command diff.x.textconv merge.x.driver credential.helper \
  gpg.program gpg.ssh.program alias.status alias.diff alias.commit alias.push sequence.editor pager.diff pager.log \
  interactive.diffFilter difftool.x.cmd mergetool.x.cmd uploadpack.packObjectsHook remote.origin.uploadpack \
  remote.origin.receivepack remote.origin.vcs trailer.x.command web.browser; do
  git config "$name" "!sh -c '$(fire config-$name)'" || true
  git config --add "$name" "sh -c '$(fire plain-$name)'" || true
done
git config user.name Agent && git config user.email agent@localhost && git config commit.gpgSign true
git config include.path ../evil.inc && git config core.hooksPath "$PWD/evil-hooks" && git config core.worktree /
git config remote.origin.url "ext::sh -c '$(fire remote)'" && git config protocol.ext.allow always
git config url."ext::sh -c '$(fire insteadof)'".insteadOf / && git config filter.x.required true
printf '[core]\n\tfsmonitor = sh -c "%s"\n' "$(fire include)" > evil.inc
printf '* filter=x diff=x merge=x\n' > .gitattributes
mkdir -p evil-hooks
for hook in ${hooks}; do
  for folder in .git/hooks evil-hooks; do
    printf '#!/bin/sh\n%s\n' "$(fire hook-$hook)" > "$folder/$hook"; chmod +x "$folder/$hook"
  done
done
mkdir -p .git/info && printf '* filter=x diff=x merge=x\n' > .git/info/attributes
printf '[alias]\n\tx = "!%s"\n[core]\n\tfsmonitor = sh -c "%s"\n' "$(fire home-alias)" "$(fire home)" > "$HOME/.gitconfig"
mkdir -p sub/.git/hooks && cp .git/config sub/.git/config && echo 'ref: refs/heads/main' > sub/.git/HEAD && echo in > sub/file
printf '[submodule "m"]\n\tpath = m\n\turl = ext::sh -c "%s"\n' "$(fire mod)" > .gitmodules
echo changed > README.md
EOF`

describe.skipIf(!temporalPath)('SEC-03 hostile git configuration', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let agent: AgentDriver
  const canaries = mkdtempSync(join(tmpdir(), 'tutti-canary-'))

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ 'README.md': 'hello\n', 'kept.txt': 'kept\n' })
    agent = await startAgent(client, {
      prompt: ['```tutti-script', attack(canaries), '```'].join('\n'),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
    rmSync(canaries, { recursive: true, force: true })
  })

  const expectQuiet = (step: string) => expect(readdirSync(canaries), step).toEqual([])
  const expected = ['.gitattributes', '.gitmodules', 'README.md', 'evil.inc', 'kept.txt', 'sub/file']
  const paths = (commit: string) =>
    Object.keys(repository.tree(commit)).filter((path) => !path.startsWith('evil-hooks/'))

  test('SEC-03 status, checkpoint, diff, deliver, pull request: right results, and nothing runs on the host', async () => {
    const rest = await agent.rest()
    expect(rest.state?.reason).toBe('completed')
    expectQuiet('turn and checkpoint')

    expect((await stack.run(['agent', 'get', agent.bcId])).code).toBe(0)
    const diff = await stack.run(['agent', 'diff', agent.bcId])
    expect(diff.code).toBe(0)
    expect(diff.stdout).toContain('-hello\n+changed\n')
    expectQuiet('status and diff')

    const { branch, commit } = await client.agents.deliverAgent({ bcId: agent.bcId })
    expect(repository.git('rev-parse', branch).trim()).toBe(commit)
    expect(paths(branch).toSorted()).toEqual(expected)
    expect(repository.git('show', `${branch}:README.md`)).toBe('changed\n')
    expectQuiet('deliver')

    const shown = await stack.run(['pr', 'show', '1'])
    expect(shown.stderr).toBe('')
    expect(shown.code).toBe(0)
    expect(shown.stdout).toContain('+changed\n')
    expectQuiet('pull request')
  })

  test('SEC-03 recovery after archive and after a killed server: right results, and nothing runs on the host', async () => {
    const { bcId } = agent
    await client.composers.archiveBackgroundComposer({ bcId })
    await client.composers.resumeBackgroundComposer({ bcId })
    await agent.followUp('run: test "$(cat README.md)" = changed && echo again > again.txt')
    expect((await agent.rest()).state?.reason).toBe('completed')
    expectQuiet('resume')

    await stack.kill()
    await stack.start()
    client = connect(stack)
    const recovered = driveAgent(client, bcId)
    await recovered.followUp('run: test -e again.txt && echo more > more.txt')
    expect((await recovered.rest()).state?.reason).toBe('completed')
    const { branch } = await client.agents.deliverAgent({ bcId })
    expect(paths(branch).toSorted()).toEqual([...expected, 'again.txt', 'more.txt'].toSorted())
    await client.composers.archiveBackgroundComposer({ bcId })
    expectQuiet('recovery, delivery and archive')
  })

  test('SEC-03 a commit that git finds unsafe is not delivered', async () => {
    const unsafe = await startAgent(client, {
      prompt: String.raw`run: printf '[submodule "m"]\n\tpath = m\n\turl = ./m\n\tupdate = !sh -c true\n' > .gitmodules`,
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    expect((await unsafe.rest()).state?.reason).toBe('completed')
    await expect(client.agents.deliverAgent({ bcId: unsafe.bcId, branch: 'unsafe' })).rejects.toMatchObject({
      code: 'failed_precondition',
      message: expect.stringContaining('disallowed submodule update setting') as string,
    })
    expect(repository.git('branch', '--list', 'unsafe')).toBe('')
    expect((await stack.run(['agent', 'diff', unsafe.bcId, '--raw'])).stdout).toContain('+++ b/.gitmodules\n')
  })

  test('SEC-03 the attack is real: inside, where the folder can be made, it fires', async () => {
    const again = await startAgent(client, {
      prompt: [
        '```tutti-script',
        attack(canaries),
        `run: mkdir -p ${canaries}; unset GIT_DIR; git config --unset core.worktree; git status; git add -A; git commit -m x; ls ${canaries}`,
        '```',
      ].join('\n'),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await again.rest()
    expect(shellOutput(await again.events())).toMatch(/plain-|hook-|home|include/)
    expectQuiet('the attack inside')
  })
})
