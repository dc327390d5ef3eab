// The vendor's own client for Azure, as a peer of bench_store.py: moves blobs and prints how many seconds it took.
//
//     NODE_PATH=build/peers/node_modules node bench/store_node.js CONTAINER put|get BYTES COUNT CALLERS
//
// AZURE_STORAGE_CONNECTION_STRING says where and who.  Starting node and loading the client is not in the time; the first
// connection is.
"use strict";
const { BlobServiceClient } = require("@azure/storage-blob");

async function main([container, how, bytes, count, callers]) {
    const client = BlobServiceClient.fromConnectionString(process.env.AZURE_STORAGE_CONNECTION_STRING);
    const folder = client.getContainerClient(container);
    const body = Buffer.alloc(Number(bytes), 7);
    let next = 0;
    const caller = async () => {
        const buffer = Buffer.alloc(how === "get" ? Number(bytes) : 0);
        while (next < Number(count)) {
            const blob = folder.getBlockBlobClient(`${bytes}/${next++}`);
            if (how === "put") await blob.upload(body, body.length);
            else await blob.downloadToBuffer(buffer, 0, Number(bytes), { concurrency: 1, blockSize: Number(bytes) });
        }
    };
    const start = process.hrtime.bigint();
    await Promise.all(Array.from({ length: Number(callers) }, caller));
    console.log(JSON.stringify({ seconds: Number(process.hrtime.bigint() - start) * 1e-9 }));
}

main(process.argv.slice(2)).catch((error) => {
    console.error(error.message);
    process.exit(1);
});
