import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { phasesOf } from './ensemble-events.ts'
import type { RunJson } from './run-json.ts'
import { nothingLeft } from './nothing-left.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('ensembles, from the command line', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  const repositories: TestRepository[] = []

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    await stack.start()
  })
  afterEach(() => {
    for (const repository of repositories.splice(0)) repository.remove()
  })
  afterAll(() => stack.remove())

  const repositoryOf = (files: Readonly<Record<string, string>>) => {
    const repository = createTestRepository(files)
    repositories.push(repository)
    return repository
  }
  const agents = (...commands: readonly string[]) =>
    commands.flatMap((command) => ['--agent', `command:sh -c '${command}'`])
  const run = (repository: TestRepository, args: readonly string[], codes: readonly number[] = [0]) =>
    stack.json<RunJson>(['run', 'do it', '--repo', repository.path, ...args], codes)

  test('ENS-01 one child of five fails, the others are delivered', async () => {
    const repository = repositoryOf({ 'a.txt': 'a\n' })
    const commands = [1, 2, 3, 4, 5].map((n) =>
      n === 3 ? 'sleep 0.4; echo broken >&2; exit 7' : `sleep 1; echo ${n} > file${n}.txt`,
    )
    const result = await run(repository, ['--strategy', 'merge', ...agents(...commands)])
    expect(result).toMatchObject({ phase: 'COMPLETED', reason: 'completed' })
    expect(await phasesOf(stack, result.ensemble_id)).toEqual([
      'STARTING',
      'CHILDREN_RUNNING',
      'GATHERING',
      'SYNTHESIZING',
      'COMPLETED',
    ])
    expect(result.attempts.map((attempt) => attempt.reason)).toEqual([
      'completed',
      'completed',
      'agent_error',
      'completed',
      'completed',
    ])
    const failed = result.attempts[2]!.bc_id
    expect(result.report.failures).toHaveLength(1)
    expect(result.report.failures[0]).toMatchObject({ bc_id: failed, reason: 'agent_error' })
    expect(result.report.failures[0]!.message).toContain('broken')
    expect(result.report.failures[0]!.log_command).toBe(`tutti agent events ${failed}`)
    expect(Object.keys(repository.tree(result.synthesis!.commit)).sort()).toEqual([
      'a.txt',
      'file1.txt',
      'file2.txt',
      'file4.txt',
      'file5.txt',
    ])
    // No sibling was restarted: each had one sandbox.
    for (const { bc_id } of result.attempts) {
      const events = await stack.run(['agent', 'events', bc_id, '-o', 'jsonl'])
      expect(events.stdout.match(/"state":"ready"/g) ?? []).toHaveLength(1)
    }
  })

  test('ENS-02 all children fail: one clear answer, nothing delivered, nothing left', async () => {
    const repository = repositoryOf({ 'a.txt': 'a\n' })
    const branches = repository.git('branch', '--list')
    const result = await run(
      repository,
      [
        '--child-timeout',
        '3s',
        ...agents('exit 3', 'sleep 600', 'echo only a message >&2; exit 1', 'kill -9 $$'),
      ],
      [3],
    )
    expect(result).toMatchObject({
      phase: 'ERROR',
      reason: 'all_children_failed',
      synthesis: null,
      pull_request: null,
    })
    expect(await phasesOf(stack, result.ensemble_id)).toEqual([
      'STARTING',
      'CHILDREN_RUNNING',
      'GATHERING',
      'ERROR',
    ])
    expect(result.report.failures.map((failure) => failure.reason)).toEqual([
      'agent_error',
      'timeout',
      'agent_error',
      'agent_error',
    ])
    expect(repository.git('branch', '--list')).toBe(branches)
    await nothingLeft(stack)
  })

  test('ENS-02 each failure keeps its own reason: setup script', async () => {
    const repository = repositoryOf({ 'a.txt': 'a\n' })
    const result = await run(
      repository,
      ['--setup', 'echo no compiler here >&2; exit 4', ...agents('true', 'true')],
      [3],
    )
    expect(result).toMatchObject({ phase: 'ERROR', reason: 'all_children_failed' })
    for (const failure of result.report.failures) {
      expect(failure.reason).toBe('setup_failed')
      expect(failure.message).toContain('no compiler here')
    }
  })

  test('ENS-03 a child that lives but does nothing ends at its limit', async () => {
    const repository = repositoryOf({ 'a.txt': 'a\n' })
    const startedAt = Date.now()
    const result = await run(repository, [
      '--strategy',
      'merge',
      '--child-timeout',
      '5s',
      ...agents('echo 1 > one', 'while :; do sleep 0.2; done', 'echo 3 > three'),
    ])
    expect(result).toMatchObject({ phase: 'COMPLETED', reason: 'completed' })
    expect(['timeout', 'stalled']).toContain(result.attempts[1]!.reason)
    expect(Object.keys(repository.tree(result.synthesis!.commit)).sort()).toEqual(['a.txt', 'one', 'three'])
    expect(Date.now() - startedAt).toBeLessThan(20_000)
    await nothingLeft(stack)
  })

  test('ENS-05 two children edit the same line: reported with both versions, the rest is merged', async () => {
    const lines = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`)
    const repository = repositoryOf({ 'app.ts': `${lines.join('\n')}\n` })
    const result = await run(repository, [
      '--strategy',
      'merge',
      ...agents(
        'sed -i "10s/.*/first/" app.ts; echo 1 > new1.ts',
        'sed -i "10s/.*/second/; 20s/.*/end/" app.ts; echo 2 > new2.ts',
      ),
    ])
    expect(result).toMatchObject({ phase: 'COMPLETED', reason: 'completed' })
    expect(result.report.conflicts).toHaveLength(1)
    const [conflict] = result.report.conflicts
    expect(conflict).toMatchObject({ path: 'app.ts', line: 10 })
    const texts = conflict!.versions.map((version) => [
      version.bc_id ?? version.bc_ids?.[0],
      version.text.trim(),
    ])
    expect(texts).toEqual([
      [result.attempts[0]!.bc_id, 'first'],
      [result.attempts[1]!.bc_id, 'second'],
    ])
    const tree = repository.tree(result.synthesis!.commit)
    expect(Object.keys(tree).sort()).toEqual(['app.ts', 'new1.ts', 'new2.ts'])
    expect(tree['app.ts']).toContain('line 10\n')
    expect(tree['app.ts']).toContain('\nend\n')
    for (const content of Object.values(tree)) expect(content).not.toMatch(/^(<<<<<<<|=======|>>>>>>>)/m)
  })

  test('ENS-06 identical patches count once and credit all', async () => {
    const repository = repositoryOf({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
    const same = 'echo changed > a.txt; echo changed > b.txt'
    for (const strategy of ['merge', 'pick']) {
      const result = await run(repository, ['--strategy', strategy, ...agents(same, same, same, same)])
      expect(result).toMatchObject({
        phase: 'COMPLETED',
        reason: 'completed',
        report: { conflicts: [], failures: [] },
      })
      expect(result.report.equal_groups.map((group) => [...group].sort())).toEqual([
        result.attempts.map((attempt) => attempt.bc_id).sort(),
      ])
      expect(repository.tree(result.synthesis!.commit)).toEqual({
        'a.txt': '100644 changed\n',
        'b.txt': '100644 changed\n',
      })
      repository.git('branch', '-D', result.synthesis!.branch)
    }
  })

  test('ENS-07 children without a change are no candidates; all without: nothing to deliver', async () => {
    const repository = repositoryOf({ 'README.md': 'helo\n' })
    const result = await run(repository, [...agents('true', 'echo x > x; rm x', 'echo hello > README.md')])
    expect(result.attempts.map((attempt) => attempt.reason)).toEqual([
      'nothing_to_deliver',
      'nothing_to_deliver',
      'completed',
    ])
    expect(repository.tree(result.synthesis!.commit)).toEqual({ 'README.md': '100644 hello\n' })

    const branches = repository.git('branch', '--list')
    const nothing = await run(repository, [...agents('true', 'true', 'true')], [8])
    expect(nothing).toMatchObject({
      phase: 'COMPLETED',
      reason: 'nothing_to_deliver',
      synthesis: null,
      pull_request: null,
    })
    expect(repository.git('branch', '--list')).toBe(branches)
  })

  test('ENS-08 one child only takes the same path; no children are refused', async () => {
    const repository = repositoryOf({ 'a.txt': 'a\n' })
    const result = await run(repository, agents('echo b > a.txt'))
    expect(await phasesOf(stack, result.ensemble_id)).toEqual([
      'STARTING',
      'CHILDREN_RUNNING',
      'GATHERING',
      'SYNTHESIZING',
      'COMPLETED',
    ])
    const attempt = await stack.run(['agent', 'diff', result.attempts[0]!.bc_id])
    expect(repository.git('diff', '--full-index', 'main', result.synthesis!.commit)).toBe(attempt.stdout)
    expect(repository.tree(result.synthesis!.commit)).toEqual({ 'a.txt': '100644 b\n' })
    for (const count of ['0', '-1', '51']) {
      const refused = await stack.run([
        'run',
        'do it',
        '--repo',
        repository.path,
        `--agents=${count}`,
        '-o',
        'json',
      ])
      expect(refused.code).toBe(64)
      expect(refused.stderr).toContain('invalid_argument')
      if (count === '51') expect(refused.stderr).toContain('50')
    }
  })
})
