import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '@tutti/core'
import { findTemporalServer } from '@tutti/temporal-binary'
import { createTestRepository, createTuttiStack, type TuttiStack } from '@tutti/testkit'
import { chromium, type Page } from 'playwright-core'

/**
 * Takes the pictures of docs/operations.md: real ensembles under `tutti dev`, one of them with children that hang and one that waits
 * for a slot, in the Temporal UI as an operator sees them. Needs Chromium (`CHROMIUM_PATH`, default /usr/bin/chromium).
 */
const images = fileURLToPath(new URL('../../docs/images', import.meta.url))
const signal = AbortSignal.timeout(180_000)

async function main(): Promise<void> {
  const server = await findTemporalServer({ env: process.env, log: (line) => console.error(line) })
  if (server.kind !== 'binary') throw new Error('There is no Temporal server to take pictures of.')
  mkdirSync(images, { recursive: true })
  const repository = createTestRepository({ 'README.md': '# A small project\n', 'sum.js': 'export {}\n' })
  const stack = await createTuttiStack({ temporalPath: server.path, env: { TUTTI_MAX_SANDBOXES: '2' } })
  try {
    const { address, temporal_ui: ui } = await stack.start()
    await stack.run(runArguments(repository.path, 'Add a changelog', ["sh -c 'echo new > CHANGELOG.md'"]))
    const hanging = stack.cli(
      runArguments(repository.path, 'Make sum() handle negative numbers', [
        "sh -c 'echo done > sum.test.js'",
        'sleep 600',
        'sleep 600',
        'sleep 600',
      ]),
    )
    const metrics = () => readMetrics(stack, address)
    await until(async () => (await metrics()).includes('\ntutti_agents_waiting_for_slot 1\n'))
    await until(async () => (await metrics()).includes('\ntutti_sandboxes{state="working"} 2\n'))
    await takeAll(ui)
    hanging.process.kill('SIGINT')
    await hanging.done
  } finally {
    await stack.remove()
    repository.remove()
  }
}

function runArguments(repository: string, prompt: string, commands: readonly string[]): string[] {
  const agents = commands.flatMap((command) => ['--agent', `command:${command}`])
  return ['run', prompt, '--repo', repository, ...agents]
}

async function takeAll(ui: string): Promise<void> {
  const browser = await chromium.launch({
    executablePath: process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
  try {
    const page = await browser.newPage({ viewport: { width: 1400, height: 960 } })
    page.setDefaultTimeout(60_000)
    const take = (name: string) => page.screenshot({ path: join(images, `${name}.png`) })
    await openList(page, ui)
    await take('temporal-list')

    await page
      .getByRole('link', { name: /^ensemble\// })
      .first()
      .click()
    await openTab(page, 'User Metadata')
    await detailsWith(page, 'CHILDREN_RUNNING')
    await take('temporal-ensemble')

    const stuck = await findAgent(page, ui, 'runTurn')
    await take('temporal-pending-activity')
    await openTab(page, 'User Metadata')
    await detailsWith(page, 'at work')
    await take('temporal-agent')
    await openTab(page, 'Timeline')
    await page.getByText('run the agent').first().scrollIntoViewIfNeeded()
    await take('temporal-timeline')

    await findAgent(page, ui, 'admit', stuck)
    await take('temporal-waiting')
  } finally {
    await browser.close()
  }
}

/** The list with the columns that help: status and task of agents instead of run ids. */
async function openList(page: Page, ui: string): Promise<void> {
  await page.goto(`${ui}/namespaces/default/workflows`)
  await page.getByTestId('workflows-summary-table-configuration-button').click()
  for (const column of ['AgentStatus', 'AgentRepo', 'AgentOwner'])
    await page.getByRole('button', { name: `Add ${column} column` }).click()
  for (const column of ['Run ID', 'Type', 'End'])
    await page.getByRole('button', { name: `Remove ${column} column` }).click()
  await page.getByTestId('drawer-close-button').click()
  // It fades out, and would lie over the table.
  await page.getByTestId('drawer-close-button').waitFor({ state: 'detached' })
  await page.getByRole('cell', { name: 'CHILDREN_RUNNING' }).first().waitFor()
}

/** Opens running agents until one has this pending activity, and stays on that tab. */
async function findAgent(page: Page, ui: string, activity: string, not?: string): Promise<string> {
  const query = encodeURIComponent('AgentStatus="RUNNING"')
  for (let index = 0; ; index += 1) {
    await page.goto(`${ui}/namespaces/default/workflows?query=${query}`)
    const links = page.getByRole('link', { name: /^agent\// })
    await links.first().waitFor()
    if (index >= (await links.count())) throw new Error(`No agent has the pending activity ${activity}.`)
    const name = (await links.nth(index).textContent()) ?? ''
    if (name === not) continue
    await links.nth(index).click()
    await openTab(page, 'Pending Activities')
    await page.getByText('Last Heartbeat').first().waitFor()
    if (await page.getByText(activity, { exact: true }).first().isVisible()) return name
  }
}

async function openTab(page: Page, name: string): Promise<void> {
  await page.getByRole('tab', { name }).first().click()
}

/** The UI shows markdown in frames of their own. */
async function detailsWith(page: Page, text: string): Promise<void> {
  await page.frameLocator('iframe').last().getByText(text).first().waitFor()
}

async function readMetrics(stack: TuttiStack, address: string): Promise<string> {
  const key = readFileSync(join(stack.dataDir, 'local-key'), 'utf8').trim()
  const response = await fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${key}` }, signal })
  return response.text()
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await systemClock.sleep(250, signal)
}

await main()
