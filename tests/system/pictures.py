# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/pictures: MILLRACE=… python3 pictures.py FOLDER [SECONDS]. The decoder is the program
POCKETSPHINX_WORKER. The plots of the live page fill in 300 s, which is the default."""
import asyncio
import os
import random
import sys

from browser import Browser, Page
from harness import MILLRACE, Process, Service, samples, wait_for

SPEECH = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav"
PIPELINES = """
[[pipeline]]
name = "default"
slots = 8
chunk = { size = "100ms" }
batch = { rows = 8, max_wait = "5ms" }
[[pipeline]]
name = "vad"
slots = 64
chunk = { size = "32ms" }
batch = { rows = 16, max_wait = "2ms" }
"""


async def client(service, number):
    """Streams that come and go, with a lost packet or a reset now and then."""
    while True:
        async with service.connect(pipeline="vad", id=f"room-{number}-{random.randrange(1000):03}") as connection:
            reading = asyncio.ensure_future(read(connection))
            for _ in range(random.randrange(100, 600)):
                await connection.send(samples(0, 800 + 40 * number))
                if random.random() < 0.01:
                    await connection.send(random.choice(('{"type":"reset"}', '{"type":"gap","frames":800}')))
                await asyncio.sleep((800 + 40 * number) / 16000)
            await connection.send('{"type":"end"}')
            await reading


async def read(connection):
    async for _ in connection:
        pass


async def picture(page, folder, name, size, dark=False):
    await page.window(*size, dark)
    await asyncio.sleep(2.5)  # it is drawn once a second
    await page.picture(os.path.join(folder, name))


async def live_page(browser, service, folder, seconds):
    async with Page(browser, f"http://127.0.0.1:{service.admin_port}/", (1100, 960)) as page:
        await page.until("document.querySelectorAll('#pipelines button').length > 0")
        await page.value("document.querySelectorAll('#pipelines button')[1].click()")
        await asyncio.sleep(seconds)
        await picture(page, folder, "live_wide.png", (1100, 960))
        await picture(page, folder, "live_wide_dark.png", (1100, 960), dark=True)
        await picture(page, folder, "live_narrow.png", (390, 844))
        await page.value("document.getElementById('workers').closest('section').scrollIntoView()")
        await picture(page, folder, "live_narrow_dark.png", (390, 844), dark=True)


async def try_page(browser, service, folder):
    async with Page(browser, f"http://127.0.0.1:{service.port}/", (1100, 800)) as page:
        await page.click("listen")
        for button, wait in (("flush", 4), ("gap", 3), ("reset", 1.5)):
            await asyncio.sleep(wait)
            await page.click(button)
        await asyncio.sleep(1)
        await page.picture(os.path.join(folder, "try_wide.png"))
        await picture(page, folder, "try_narrow.png", (390, 844), dark=True)
        await page.click("stop")


async def take(browser, service, folder, seconds):
    clients = [asyncio.ensure_future(client(service, number)) for number in range(20)]
    await live_page(browser, service, folder, seconds)
    await try_page(browser, service, folder)
    for one in clients:
        one.cancel()


def main(folder, seconds=300.0):
    service = Service(PIPELINES, "try_page = true\n")
    browser = Browser(SPEECH)
    decoder = Process(os.environ["POCKETSPHINX_WORKER"], "--url", service.workers, "--warm", "2")
    worker = service.tap("vad")
    try:
        wait_for(lambda: service.metric("millrace_workers", pipeline="default"), "the decoder")
        asyncio.run(take(browser, service, folder, float(seconds)))
    finally:
        for process in (worker, decoder, browser, service):
            process.close() if process is browser else process.kill()


if __name__ == "__main__":
    assert MILLRACE
    main(*sys.argv[1:])
